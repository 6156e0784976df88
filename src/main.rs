//! The `understudy` program: arguments in, exit code out.

use std::process::ExitCode;

/// Frees and reuses large buffers without giving their pages back in between, which is what a broker does all day.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    understudy::cli::run(std::env::args_os(), std::env::vars_os(), understudy::serve)
}

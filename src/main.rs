//! The `understudy` program: arguments in, exit code out.

use std::process::ExitCode;

/// Frees and reuses large buffers without giving their pages back in between, which is what a broker does all day.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Huge pages would make every thread's first allocations resident by 2 MiB; an idle broker is to be small.
    // SAFETY: PR_SET_THP_DISABLE takes a flag and three zeros, and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    understudy::cli::run(std::env::args_os(), std::env::vars_os(), understudy::serve)
}

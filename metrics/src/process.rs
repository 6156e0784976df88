//! What Linux knows of this process, read from `/proc/self` when a scrape comes. A file that cannot be read leaves its samples out.

use std::fs;

use crate::family::Family;
use crate::sink::Sink;

/// Clock ticks per second in `/proc`: Linux shows 100 to user space whatever the kernel runs at.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn collect(out: &mut Sink) {
    if let Ok(io) = fs::read_to_string("/proc/self/io") {
        put_field(out, Family::DiskReadBytes, &io, "read_bytes:", 1.0);
        put_field(out, Family::DiskWriteBytes, &io, "write_bytes:", 1.0);
    }
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        put_field(out, Family::ProcessResidentBytes, &status, "VmRSS:", 1024.0);
        put_field(out, Family::ProcessVirtualBytes, &status, "VmSize:", 1024.0);
        put_field(out, Family::ProcessThreads, &status, "Threads:", 1.0);
    }
    if let Ok(stat) = fs::read_to_string("/proc/self/stat") {
        put_stat(out, &stat, fs::read_to_string("/proc/stat").ok().as_deref().and_then(|text| field(text, "btime")));
    }
    if let Ok(limits) = fs::read_to_string("/proc/self/limits") {
        put_field(out, Family::ProcessMaxFds, &limits, "Max open files", 1.0);
    }
    if let Ok(fds) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory that is being read.
        out.put(Family::ProcessOpenFds, &[], fds.count().saturating_sub(1) as f64);
    }
}

fn put_field(out: &mut Sink, family: Family, text: &str, name: &str, unit: f64) {
    if let Some(value) = field(text, name) {
        out.put(family, &[], value * unit);
    }
}

/// The first number after a line's name.
fn field(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// `/proc/self/stat`: the fields after the command, which is in parentheses and may contain anything (proc(5): 14 utime, 15 stime, 22
/// starttime).
fn put_stat(out: &mut Sink, stat: &str, boot_seconds: Option<f64>) {
    let Some((_, after_command)) = stat.rsplit_once(')') else { return };
    let number = |field: usize| after_command.split_whitespace().nth(field - 3)?.parse::<f64>().ok();
    if let (Some(user), Some(system)) = (number(14), number(15)) {
        out.put(Family::ProcessCpuSeconds, &[], (user + system) / TICKS_PER_SECOND);
    }
    if let (Some(start), Some(boot)) = (number(22), boot_seconds) {
        out.put(Family::ProcessStartSeconds, &[], boot + start / TICKS_PER_SECOND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(field("VmPeak:\t 12 kB\nVmRSS:\t  3456 kB\n", "VmRSS:"), Some(3456.0));
        assert_eq!(field("Max open files            1024                 4096                 files", "Max open files"), Some(1024.0));
        assert_eq!(field("Max open files            unlimited            unlimited            files", "Max open files"), None);
    }

    #[test]
    fn a_command_with_parentheses_does_not_shift_the_fields() {
        let fields: Vec<String> = (4..=30).map(|n| n.to_string()).collect();
        let mut sink = Sink::new(0);
        put_stat(&mut sink, &format!("7 (a b) c) S {}", fields.join(" ")), Some(1000.0));
        let values: Vec<f64> = sink
            .into_families()
            .iter()
            .map(|family| match family.name() {
                "process_cpu_seconds_total" => family.get_metric()[0].get_counter().get_value(),
                _ => family.get_metric()[0].get_gauge().get_value(),
            })
            .collect();
        assert_eq!(values, [(14.0 + 15.0) / 100.0, 1000.22]);
    }
}

//! One thread of the cleaner.

use super::pace::Paced;
use super::{Offer, Settings, Shared};
use crate::actors::log_io::Job;
use crate::actors::partition::messages::{Compact, Compacted, Swap, Work};
use crate::core::types::{Millis, TopicPartition};
use crate::log::compact::{self, Cleaned, CompactError, Stats, SwapRefused};
use crate::log::{Fs, LogError, Storage};
use crate::rt::clock;
use crate::rt::{Gone, Reply, Tell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

/// Nice value of the thread: what clients wait for comes first.
const NICE: i32 = 10;

/// Takes one partition after the other.
pub fn run(shared: &Shared) {
    // Of this thread alone: Linux keeps it for each. Where it may not be set, the thread is as good as others.
    let _ = rustix::process::setpriority_process(None, NICE);
    while let Some((at, offer, settings)) = shared.next() {
        let worked = catch_unwind(AssertUnwindSafe(|| work(shared, at, &offer, &settings)));
        if worked.is_err() {
            shared.ended(at, &offer, Default::default(), Err(Some("a fault in this broker: see the panic above, and report it")));
            offer.partition.tell(Compacted { cleaned: None });
        }
        shared.left(&offer);
    }
}

/// Asks the partition and waits for its answer, which it gives without waiting for anything itself.
fn ask<T: Send + 'static>(ask: impl FnOnce(Reply<T>)) -> Result<T, Gone> {
    let (tell, answer) = mpsc::channel();
    ask(Reply::with(move |answer| {
        let _ = tell.send(answer);
    }));
    answer.recv().unwrap_or(Err(Gone))
}

fn work(shared: &Shared, at: TopicPartition, offer: &Offer, settings: &Settings) {
    let Ok(Some(work)) = ask(|reply| offer.partition.tell(Compact { reply })) else { return };
    let begun = clock::moment();
    let means = compact::Settings { map: settings.map_limits(), io_buffer: settings.io_buffer(), secret: shared.secret };
    let mut pace = Paced { throttle: &shared.throttle, stop: &work.stop };
    let outcome = work.task.run(&means, &mut pace, &mut |cleaned| swap(offer, &work, cleaned));
    let took = begun.elapsed();
    let stopped = work.stop.load(std::sync::atomic::Ordering::Relaxed);
    match &outcome {
        Ok(stats) => {
            log(offer, stats, took.as_secs_f64());
            shared.ended(at, offer, took, Ok(*stats));
        }
        Err(CompactError::Stopped(_) | CompactError::Changed) => shared.ended(at, offer, took, Err(None)),
        // Its directory may be on its way to be deleted.
        Err(_) if stopped => shared.ended(at, offer, took, Err(None)),
        Err(e) => shared.ended(at, offer, took, Err(Some(&e.to_string()))),
    }
    let cleaned = outcome.ok().map(|stats| (stats.cleaned_to, work.task.generation()));
    offer.partition.tell(Compacted { cleaned });
}

/// Has the partition put a segment in place; then its name is brought to the disk, and what it replaced is deleted.
fn swap(offer: &Offer, work: &Work, cleaned: Cleaned) -> Result<(), CompactError> {
    let replaced = match ask(|reply| offer.partition.tell(Swap { cleaned, reply })) {
        Ok(Ok(replaced)) => replaced,
        Ok(Err(SwapRefused::Log(e))) => return Err(e.into()),
        Ok(Err(SwapRefused::Changed)) | Err(Gone) => return Err(CompactError::Changed),
    };
    let dir = work.task.dir();
    Fs.sync_dir(dir).map_err(|e| LogError::io("sync", dir, e))?;
    let at = Millis(clock::now().0.saturating_add(work.delete_delay_ms));
    replaced.paths.into_iter().for_each(|path| work.io.tell(Job::Remove { path, at }));
    Ok(())
}

fn log(offer: &Offer, stats: &Stats, seconds: f64) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    tracing::info!(
        partition = %offer.name,
        from = offer.dirt.from.0,
        to = stats.cleaned_to.0,
        read_mib = format_args!("{:.1}", mib(stats.read_bytes)),
        kept_mib = format_args!("{:.1}", mib(stats.kept_bytes)),
        segments = format_args!("{} -> {}", stats.replaced, stats.written),
        mib_per_s = format_args!("{:.0}", mib(stats.read_bytes + stats.mapped_bytes) / seconds.max(1e-6)),
        map_full_percent = format_args!("{:.0}", stats.utilization * 100.0),
        "compacted"
    );
    if stats.keyless > 0 {
        tracing::warn!(partition = %offer.name, records = stats.keyless, "records without a key, written before the topic was compacted, are gone");
    }
}

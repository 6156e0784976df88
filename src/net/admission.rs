//! How much of the process a client may take: connections, and bytes of requests that have arrived but are not yet answered.
//!
//! Bytes count as they arrive, never as announced: a client that announces 100 MiB and sends nothing holds nothing.

use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::Notify;

/// A frame up to this size is always read to its end, so that full admission cannot stop the requests that would empty it.
pub const ALWAYS_ADMITTED: usize = 64 * 1024;

/// Request bytes in the process, against a limit.
#[derive(Debug)]
pub struct Admission {
    held: AtomicUsize,
    limit: usize,
    freed: Notify,
}

impl Admission {
    /// At most about `limit` bytes of requests.
    pub fn new(limit: usize) -> Admission {
        Admission { held: AtomicUsize::new(0), limit, freed: Notify::new() }
    }

    /// Bytes held now.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// The limit.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a connection may read more of a large frame.
    pub fn is_open(&self) -> bool {
        self.held() < self.limit
    }

    /// Until it is worth asking `is_open` again.
    pub async fn freed(&self) {
        let freed = self.freed.notified();
        if !self.is_open() {
            freed.await;
        }
    }

    /// So many bytes arrived.
    pub fn take(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// So many bytes are answered, or their connection is gone.
    pub fn give(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Relaxed);
        if before >= self.limit && before - bytes < self.limit {
            self.freed.notify_waiters();
        }
    }
}

/// Open connections, in all and per address.
#[derive(Debug)]
pub struct Connections {
    open: Mutex<FxHashMap<IpAddr, usize>>,
    total: AtomicUsize,
}

/// Why a new connection was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TurnedAway {
    /// `max.connections` are open.
    #[error("max.connections are open")]
    Total,
    /// `max.connections.per.ip` are open from this address.
    #[error("max.connections.per.ip are open from this address")]
    PerAddress,
}

/// One admitted connection; leaving is dropping it.
#[derive(Debug)]
pub struct Seat {
    from: IpAddr,
    connections: std::sync::Arc<Connections>,
}

impl Connections {
    /// None open.
    pub fn new() -> std::sync::Arc<Connections> {
        std::sync::Arc::new(Connections { open: Mutex::default(), total: AtomicUsize::new(0) })
    }

    /// Open connections.
    pub fn total(&self) -> usize {
        self.total.load(Relaxed)
    }

    /// Lets a connection in, unless a limit is reached.
    pub fn enter(self: &std::sync::Arc<Self>, from: IpAddr, max: usize, max_per_address: usize) -> Result<Seat, TurnedAway> {
        if self.total() >= max {
            return Err(TurnedAway::Total);
        }
        let mut open = self.open.lock().expect("no holder of this lock panics");
        let here = open.entry(from).or_insert(0);
        if *here >= max_per_address {
            if *here == 0 {
                open.remove(&from);
            }
            return Err(TurnedAway::PerAddress);
        }
        *here += 1;
        self.total.fetch_add(1, Relaxed);
        Ok(Seat { from, connections: self.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().expect("no holder of this lock panics");
        if let Some(here) = open.get_mut(&self.from) {
            *here -= 1;
            if *here == 0 {
                open.remove(&self.from);
            }
        }
        self.connections.total.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_per_address_and_given_back() {
        let connections = Connections::new();
        let (here, there): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let first = connections.enter(here, 3, 1).expect("the first");
        assert_eq!(connections.enter(here, 3, 1).err(), Some(TurnedAway::PerAddress));
        let _other = connections.enter(there, 3, 1).expect("another address");
        drop(first);
        let _again = connections.enter(here, 3, 1).expect("its seat is free again");
        assert_eq!(connections.enter([127, 0, 0, 3].into(), 2, 1).err(), Some(TurnedAway::Total));
        assert_eq!(connections.enter([127, 0, 0, 3].into(), 9, 0).err(), Some(TurnedAway::PerAddress));
        assert_eq!(connections.total(), 2);
    }

    #[tokio::test]
    async fn a_full_house_opens_when_bytes_are_given_back() {
        let admission = Admission::new(100);
        admission.take(150);
        assert!(!admission.is_open());
        let mut waiting = Box::pin(admission.freed());
        assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_none());
        admission.give(20);
        assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_none(), "130 is still too much");
        admission.give(60);
        assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_some());
    }
}

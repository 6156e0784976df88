//! Elections, counted once each by the controller that decided them, when the record commits; never on replay. An election moves a partition
//! to another leader: leader to none, a new epoch for the same leader and the first leader of a new partition are none.

use crate::cell::Counter;
use crate::family::Family;
use crate::sink::Sink;

macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            const LABELS: &[&str] = &[$($label),*];
        }
    };
}

label! {
    /// What the new leader was, so what the election may have cost.
    ElectionType {
        /// A member of the ISR: nothing acknowledged is lost.
        Clean = "clean",
        /// An eligible leader replica (KIP-966): nothing acknowledged is lost.
        Elr = "elr",
        /// Neither: acknowledged records may be lost.
        Unclean = "unclean",
        /// A replica an operator named, outside the ISR.
        Designated = "designated",
    }
}

label! {
    /// What made the controller elect.
    ElectionReason {
        /// The leader's broker was fenced.
        Fenced = "fenced",
        /// The leader's broker is shutting down in good order.
        ControlledShutdown = "controlled_shutdown",
        /// Back to the preferred replica, asked for or automatic.
        Preferred = "preferred",
        /// The assignment changed.
        Reassignment = "reassignment",
        /// An operator asked for it.
        Manual = "manual",
        /// A configuration that allows unclean elections came into force.
        ConfigChange = "config_change",
        /// The leader's log directory failed.
        LogDir = "log_dir",
        /// The leader gave up its leadership.
        Resigned = "resigned",
        /// The survivors of a lost ISR were asked and the most complete one taken.
        UncleanRecovery = "unclean_recovery",
        /// A replica that may lead came back to a partition without leader.
        Returned = "returned",
    }
}

const REASONS: usize = ElectionReason::LABELS.len();

/// Counters for every type and reason, all born at 0.
#[derive(Debug)]
pub struct Elections([[Counter; REASONS]; ElectionType::LABELS.len()]);

impl Default for Elections {
    fn default() -> Elections {
        Elections(std::array::from_fn(|_| std::array::from_fn(|_| Counter::default())))
    }
}

impl Elections {
    /// Counts partitions that got another leader.
    pub fn elected(&self, kind: ElectionType, reason: ElectionReason, partitions: u64) {
        self.0[kind as usize][reason as usize].add(partitions);
    }

    /// Kafka's unclean counter covers elections that an operator forced on a replica outside the ISR.
    pub(crate) fn collect(&self, out: &mut Sink) {
        let mut unclean = 0;
        for (kind, by_reason) in self.0.iter().enumerate() {
            for (reason, counter) in by_reason.iter().enumerate() {
                out.put(Family::Elections, &[ElectionType::LABELS[kind], ElectionReason::LABELS[reason]], counter.get() as f64);
            }
            if kind == ElectionType::Unclean as usize || kind == ElectionType::Designated as usize {
                unclean += by_reason.iter().map(Counter::get).sum::<u64>();
            }
        }
        out.put(Family::UncleanLeaderElections, &[], unclean as f64);
    }
}

//! The handles without labels, grouped by who holds them. A field is one cell; its row in the table says what it means.

use crate::cell::{Counter, Gauge};
use crate::family::Family;
use crate::sink::Sink;

macro_rules! handles {
    ($($(#[$doc:meta])* $group:ident { $($field:ident: $cell:ident $(($start:literal))? = $family:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $group {
            $(#[doc = concat!("See `Family::", stringify!($family), "`.")] pub $field: $cell,)*
        }

        impl Default for $group {
            fn default() -> $group {
                $group { $($field: handles!(@new $cell $($start)?),)* }
            }
        }

        impl $group {
            pub(crate) fn collect(&self, out: &mut Sink) {
                $(out.put(Family::$family, &[], self.$field.get() as f64);)*
            }
        }
    )*};
    (@new $cell:ident) => { $cell::default() };
    (@new $cell:ident $start:literal) => { $cell::at($start) };
}

handles! {
    /// Held by partitions: what leaders here did to their ISRs.
    Replicas {
        isr_shrinks: Counter = IsrShrinks,
        isr_expands: Counter = IsrExpands,
        failed_isr_updates: Counter = FailedIsrUpdates,
    }

    /// Held by connections and admission.
    Edge {
        connections: Gauge = Connections,
        admitted_bytes: Gauge = AdmittedBytes,
        in_flight_requests: Gauge = InFlightRequests,
    }

    /// Held by the fetch session cache.
    FetchSessions {
        sessions: Gauge = FetchSessions,
        partitions: Gauge = FetchSessionPartitions,
        evictions: Counter = FetchSessionEvictions,
    }

    /// Held by group coordinators, each of which adds its own.
    Groups {
        all: Gauge = NumGroups,
        preparing: Gauge = NumGroupsPreparingRebalance,
        completing: Gauge = NumGroupsCompletingRebalance,
        stable: Gauge = NumGroupsStable,
        empty: Gauge = NumGroupsEmpty,
    }

    /// Held by the append path: why batches were refused. `BytesRejected` is by topic.
    Refusals {
        invalid_magic: Counter = InvalidMagicNumberRecords,
        invalid_crc: Counter = InvalidMessageCrcRecords,
        invalid_offset_or_sequence: Counter = InvalidOffsetOrSequenceRecords,
        no_key_in_compacted: Counter = NoKeyCompactedTopicRecords,
    }

    /// Held by the node. States are Kafka's numbers.
    Lifecycle {
        broker_state: Gauge = BrokerState,
        offline_log_directories: Gauge = OfflineLogDirectoryCount,
    }

    /// Held by the quorum actor; `Families::raft_state` is the state's name.
    Raft {
        current_leader: Gauge(-1) = RaftCurrentLeader,
        current_epoch: Gauge = RaftCurrentEpoch,
        high_watermark: Gauge(-1) = RaftHighWatermark,
        log_end_offset: Gauge = RaftLogEndOffset,
    }
}

/// Held by group coordinators, each of which adds its own: groups of the consumer protocol, by state.
#[derive(Debug, Default)]
pub struct ConsumerGroups {
    /// Without members.
    pub empty: Gauge,
    /// Whose target assignment is to be made.
    pub assigning: Gauge,
    /// Some of whose members are not at the target.
    pub reconciling: Gauge,
    /// All at the target.
    pub stable: Gauge,
}

impl ConsumerGroups {
    pub(crate) fn collect(&self, out: &mut Sink) {
        let states = [("empty", &self.empty), ("assigning", &self.assigning), ("reconciling", &self.reconciling), ("stable", &self.stable)];
        states.iter().for_each(|(state, gauge)| out.put(Family::ConsumerGroups, &[state], gauge.get() as f64));
    }
}

//! Traffic by topic. One add per event: the broker-wide series is the sum over topics at scrape time, plus what belongs to no topic and
//! what deleted topics had counted.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use crate::cell::Counter;
use crate::family::Family;
use crate::sink::Sink;

macro_rules! traffic {
    ($($field:ident = $family:ident,)*) => {
        /// The counters of one topic, shared by its partitions.
        #[derive(Debug, Default)]
        pub struct TopicMetrics {
            $(#[doc = concat!("See `Family::", stringify!($family), "`.")] pub $field: Counter,)*
        }

        const TRAFFIC: &[(Family, fn(&TopicMetrics) -> &Counter)] = &[$((Family::$family, |topic| &topic.$field),)*];
    };
}

traffic! {
    bytes_in = BytesIn,
    bytes_out = BytesOut,
    messages_in = MessagesIn,
    bytes_rejected = BytesRejected,
    total_produce_requests = TotalProduceRequests,
    total_fetch_requests = TotalFetchRequests,
    failed_produce_requests = FailedProduceRequests,
    failed_fetch_requests = FailedFetchRequests,
}

/// Every topic that has a replica here.
#[derive(Debug, Default)]
pub struct Topics {
    by_name: RwLock<HashMap<Arc<str>, Arc<TopicMetrics>>>,
    /// Traffic that only the broker-wide series shows: requests for topics that do not exist (their names come from clients and never
    /// become labels), and the totals of topics that were removed.
    pub no_topic: TopicMetrics,
}

impl Topics {
    /// The counters of a topic, made on first use. Only for names that exist in the cluster's metadata.
    pub fn topic(&self, name: &str) -> Arc<TopicMetrics> {
        if let Some(topic) = self.by_name.read().unwrap_or_else(|broken| broken.into_inner()).get(name) {
            return topic.clone();
        }
        let mut topics = self.by_name.write().unwrap_or_else(|broken| broken.into_inner());
        topics.entry(Arc::from(name)).or_default().clone()
    }

    /// Drops a deleted topic's series. What it counted so far stays in the broker-wide series; what handles that are still about add
    /// afterwards is lost.
    pub fn remove(&self, name: &str) {
        let mut topics = self.by_name.write().unwrap_or_else(|broken| broken.into_inner());
        if let Some(topic) = topics.remove(name) {
            TRAFFIC.iter().for_each(|(_, counter)| counter(&self.no_topic).add(counter(&topic).get()));
        }
    }

    pub(crate) fn collect(&self, out: &mut Sink) {
        let topics = self.by_name.read().unwrap_or_else(|broken| broken.into_inner());
        for (family, counter) in TRAFFIC {
            let everywhere = topics.values().map(|topic| counter(topic).get()).sum::<u64>() + counter(&self.no_topic).get();
            out.put(*family, &[], everywhere as f64);
            for (name, topic) in topics.iter() {
                out.put(*family, &[name], counter(topic).get() as f64);
            }
        }
    }
}

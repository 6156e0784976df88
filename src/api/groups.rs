//! The way from a handler to the coordinator of a group, and the topic that coordinators keep their groups in, which is made when
//! somebody first looks for one.

use super::{Cx, ask};
use crate::actors::groups::Groups;
use crate::actors::groups::messages::{Ask, TOPIC};
use crate::config::Config;
use crate::core::controller::request::{self as controller, NewTopic};
use crate::core::controller::{Answer as Made, Image, Topic};
use crate::core::group::partition_of;
use crate::core::group::request::*;
use crate::core::types::TopicPartition;
use crate::rt::{Tell, port};
use actix::Addr;
use kafka_protocol::protocol::StrBytes;
use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

thread_local! {
    /// Whether this shard has asked the controller to make the topic and has no answer.
    static CREATING: Cell<bool> = const { Cell::new(false) };
}

/// A text of a request for the core, which keeps it beyond the request.
pub fn shared(text: &str) -> Arc<str> {
    Arc::from(text)
}

/// The same, where there may be none.
pub fn shared_or_none(text: Option<&StrBytes>) -> Option<Arc<str>> {
    text.map(|text| shared(text))
}

/// The same rows with something else to say of each partition.
pub fn each_row<T, U>(rows: &Rows<T>, mut of: impl FnMut(&T) -> U) -> Rows<U> {
    Rows { topic: rows.topic.clone(), id: rows.id, partitions: rows.partitions.iter().map(|(index, value)| (*index, of(value))).collect() }
}

/// An address as Java prints it: `/10.0.0.1`, and all eight groups of an IPv6 address.
pub fn client_host(address: IpAddr) -> Arc<str> {
    let text = match address.to_canonical() {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let groups: Vec<String> = address.segments().iter().map(|group| format!("{group:x}")).collect();
            format!("/{}", groups.join(":"))
        }
    };
    Arc::from(text)
}

/// The partition that a group belongs to; none if the topic is not there.
pub fn partition(topic: &Topic, group: &str) -> TopicPartition {
    TopicPartition { topic: topic.id, partition: partition_of(group, topic.partitions.len() as i32) }
}

/// The coordinator of a group, if it is here.
fn coordinator(cx: &Cx, group: &str) -> Option<Addr<Groups>> {
    let image = cx.image();
    let topic = image.topic_by_name(TOPIC)?;
    cx.broker.routes.groups(partition(topic, group))
}

/// Asks a coordinator; without one, or when it goes away, the answer is NOT_COORDINATOR.
pub fn ask_one(groups: Option<Addr<Groups>>, request: Request) -> impl Future<Output = Answer> + 'static {
    let refusal = request.refusal(Why::NotCoordinator);
    let asked = groups.map(|groups| {
        let (reply, answer) = port();
        groups.tell(Ask { request, reply });
        answer
    });
    async move {
        match asked {
            Some(answer) => answer.await.unwrap_or(refusal),
            None => refusal,
        }
    }
}

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident: $kind:ident($question:ty) -> $answer:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name(cx: &Cx, group: &str, question: $question) -> impl Future<Output = $answer> + 'static {
            let answer = ask_one(coordinator(cx, group), Request::$kind(question));
            async move {
                match answer.await {
                    Answer::$kind(answer) => answer,
                    other => unreachable!("an answer has the name of its request, not {other:?}"),
                }
            }
        }
    )*};
}

questions! {
    /// JoinGroup.
    join: Join(Join) -> Result<Joined, JoinRefused>;
    /// SyncGroup.
    sync: Sync(Sync) -> Result<Synced, Why>;
    /// Heartbeat.
    heartbeat: Heartbeat(Membership) -> Result<(), Why>;
    /// LeaveGroup.
    leave: Leave(Leave) -> Result<Vec<Left>, Why>;
    /// OffsetCommit.
    commit: Commit(Commit) -> Result<Vec<Rows<Result<(), Why>>>, Why>;
    /// OffsetFetch.
    fetch: Fetch(Fetch) -> Result<Vec<Rows<Option<crate::core::group::CommittedOffset>>>, Why>;
    /// OffsetDelete.
    delete_offsets: DeleteOffsets(DeleteOffsets) -> Result<Vec<Rows<Result<(), Why>>>, Why>;
    /// ConsumerGroupHeartbeat.
    beat: Beat(ConsumerBeat) -> Result<Beat, Refused>;
    /// ConsumerGroupDescribe, of one group.
    describe_consumers: DescribeConsumers(Vec<Arc<str>>) -> Result<Vec<(Arc<str>, Result<DescribedConsumer, Refused>)>, Why>;
    /// DescribeGroups, of one group.
    describe: Describe(Vec<Arc<str>>) -> Result<Vec<(Arc<str>, Result<Described, Why>)>, Why>;
    /// DeleteGroups, of one group.
    delete_groups: DeleteGroups(Vec<Arc<str>>) -> Result<Vec<(Arc<str>, Result<(), Why>)>, Why>;
}

/// Has the topic made, unless somebody has asked already. Whoever needs it asks again later.
pub fn create_topic(cx: &Cx) {
    if CREATING.replace(true) {
        return;
    }
    let cx = cx.clone();
    actix::spawn(async move {
        let request = controller::Request::CreateTopics { topics: vec![topic(&cx.broker.config, &cx.image())], validate_only: false };
        let made = ask::controller(&cx, request, None).await;
        CREATING.set(false);
        match made {
            Ok(Made::CreateTopics(rows)) => {
                for (name, result) in rows {
                    if let Err(refusal) = result
                        && refusal.why != controller::Why::TopicAlreadyExists
                    {
                        tracing::warn!(topic = name, "cannot be made: {:?} {}", refusal.why, refusal.message.unwrap_or_default());
                    }
                }
            }
            _ => tracing::warn!(topic = TOPIC, "cannot be made: no controller answered"),
        }
    });
}

/// The topic as Kafka's brokers make it, but with no more replicas than there are brokers: one broker alone is no reason to have no groups.
fn topic(config: &Config, image: &Image) -> NewTopic {
    let alive = image.brokers().filter(|broker| !broker.fenced).count().max(1);
    let configs = [
        ("cleanup.policy", "compact".to_owned()),
        ("compression.type", "producer".to_owned()),
        ("segment.bytes", config.offsets_topic_segment_bytes.to_string()),
    ];
    NewTopic {
        name: TOPIC.to_owned(),
        partitions: config.offsets_topic_num_partitions,
        replication_factor: config.offsets_topic_replication_factor.min(i16::try_from(alive).unwrap_or(i16::MAX)),
        assignments: Default::default(),
        configs: configs.into_iter().map(|(name, value)| (name.to_owned(), Some(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_printed_as_java_does() {
        for (address, printed) in
            [("10.0.0.1", "/10.0.0.1"), ("::1", "/0:0:0:0:0:0:0:1"), ("::ffff:10.0.0.1", "/10.0.0.1"), ("fe80::ab", "/fe80:0:0:0:0:0:0:ab")]
        {
            assert_eq!(&*client_host(address.parse().expect("an address")), printed);
        }
    }
}

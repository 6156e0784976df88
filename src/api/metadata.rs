//! Metadata (key 3), v0-13.
//!
//! Brokers of the connection's listener, and topics with their leaders and replicas.
//! * v0 an empty list means all topics, and a dead replica is an error (REPLICA_NOT_AVAILABLE) and left out.
//! * v1 controller, racks, internal topics; null means all topics, an empty list none.
//! * v2 cluster id. v3 throttle time.
//! * v4 whether a topic may be made by asking for it. The answer is UNKNOWN_TOPIC_OR_PARTITION all the same: it is made meanwhile.
//! * v5 offline replicas. v6 LISTENER_NOT_FOUND where the leader lacks the listener, LEADER_NOT_AVAILABLE before.
//! * v7 leader epochs. v8 authorized operations (KIP-430), of the cluster until v10.
//! * v10 topic ids in answers, v12 in requests too (KIP-516). v13 an error of the whole request (KIP-1102).
//!
//! Topics of coordinators are not made by asking for them.

mod answer;

use super::nodes::Nodes;
use super::terms::{CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS, is_internal, text, topic_id, topic_name, uuid};
use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::request::{NewTopic, Why};
use crate::core::controller::{self, Image, Partition, Request, Topic, check_name};
use crate::core::types::{BrokerId, TopicId};
use crate::wire::error::ErrorCode;
use answer::{Answer, Row, Rows};
use kafka_protocol::messages::metadata_response::{MetadataResponseBroker, MetadataResponseTopic};
use kafka_protocol::messages::{self, MetadataRequest, MetadataResponse};
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(3, "Metadata", 0, 13);

/// How many topics one shard has made for asking clients at a time. More are made when asked for again.
const MAX_CREATING: usize = 1_000;

thread_local! {
    /// Names that this shard has asked the controller to make and has no answer for.
    static CREATING: RefCell<FxHashSet<String>> = RefCell::default();
}

/// Describes the cluster, and has missing topics made.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: MetadataRequest) -> Outcome<Answer> {
    let image = cx.image();
    let may_create = request.allow_auto_topic_creation && cx.broker.config.auto_create_topics_enable;
    let (answer, missing) = describe(call, &image, &cx.peer.listener, request);
    if may_create && !missing.is_empty() {
        create(cx, missing);
    }
    Outcome::Now(answer)
}

/// What a request asks for.
enum Asked {
    All,
    Names(Vec<String>),
    Ids(Vec<TopicId>),
}

/// The answer, and the names in it that could be made into topics.
fn describe(call: &Call, image: &Image, listener: &str, request: MetadataRequest) -> (Answer, Vec<String>) {
    let Some(asked) = asked(&request, call.version) else { return (malformed(call, request), Vec::new()) };
    let view = View { call, nodes: Nodes::new(image, listener), operations: request.include_topic_authorized_operations };
    let mut topics = Vec::new();
    let mut missing = Vec::new();
    match asked {
        Asked::All => topics.extend(image.topics().map(|topic| view.topic(topic))),
        Asked::Ids(ids) => {
            let (known, unknown): (Vec<_>, Vec<_>) =
                ids.into_iter().map(|id| (id, image.topic(id))).partition(|(_, topic)| topic.is_some());
            topics.extend(unknown.into_iter().map(|(id, _)| view.unknown_id(id)));
            topics.extend(known.into_iter().filter_map(|(_, topic)| topic).map(|topic| view.topic(topic)));
        }
        Asked::Names(names) => {
            for name in names {
                match image.topic_by_name(&name) {
                    Some(topic) => topics.push(view.topic(topic)),
                    None => {
                        let valid = check_name(&name).is_ok();
                        topics.push(view.unknown_name(&name, valid));
                        if valid && !is_internal(&name) {
                            missing.push(name);
                        }
                    }
                }
            }
        }
    }
    let brokers = view.nodes.alive().map(|(broker, endpoint)| {
        MetadataResponseBroker::default()
            .with_node_id(node(broker.id))
            .with_host(text(&endpoint.host))
            .with_port(i32::from(endpoint.port))
            .with_rack(broker.rack.as_deref().map(text))
    });
    let cluster_asked = (8..=10).contains(&call.version) && request.include_cluster_authorized_operations;
    let head = MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_cluster_id(Some(text(image.cluster_id())))
        .with_controller_id(node(view.nodes.controller(call.correlation)))
        .with_cluster_authorized_operations(if cluster_asked { CLUSTER_OPERATIONS } else { NOT_ASKED });
    (Answer { head, topics }, missing)
}

/// What is asked for, each topic once; `None` if that is not clear.
fn asked(request: &MetadataRequest, version: i16) -> Option<Asked> {
    let Some(topics) = &request.topics else { return Some(Asked::All) };
    if topics.is_empty() && version == 0 {
        return Some(Asked::All);
    }
    let by_id = topics.iter().any(|topic| !topic.topic_id.is_nil());
    if by_id && version < 12 {
        return None;
    }
    if by_id {
        // Names beside ids do not count, as in Kafka.
        let mut seen = FxHashSet::default();
        let ids = topics.iter().map(|topic| topic_id(topic.topic_id)).filter(|id| !id.is_zero() && seen.insert(*id));
        return Some(Asked::Ids(ids.collect()));
    }
    let mut seen = FxHashSet::default();
    let mut names = Vec::with_capacity(topics.len());
    for topic in topics {
        let name = topic.name.as_ref()?.as_str();
        if seen.insert(name) {
            names.push(name.to_owned());
        }
    }
    Some(Asked::Names(names))
}

fn malformed(call: &Call, request: MetadataRequest) -> Answer {
    let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
        let row = MetadataResponseTopic::default()
            .with_name(Some(topic.name.unwrap_or_default()))
            .with_topic_id(topic.topic_id)
            .with_error_code(call.error(ErrorCode::InvalidRequest));
        (row, Rows::new(call.version, 0))
    });
    let topics = topics.collect();
    let head = MetadataResponse::default()
        .with_cluster_id(None)
        .with_controller_id(node(BrokerId::NONE))
        .with_error_code(call.error(ErrorCode::InvalidRequest));
    Answer { head, topics }
}

struct View<'a> {
    call: &'a Call,
    nodes: Nodes<'a>,
    operations: bool,
}

/// A topic as it is told.
type Told = (MetadataResponseTopic, Rows);

impl View<'_> {
    fn topic(&self, topic: &Topic) -> Told {
        let mut rows = Rows::new(self.call.version, topic.partitions.len());
        topic.partitions.iter().for_each(|(index, partition)| self.partition(*index, partition, &mut rows));
        let told = MetadataResponseTopic::default()
            .with_name(Some(topic_name(&topic.name)))
            .with_topic_id(uuid(topic.id))
            .with_is_internal(is_internal(&topic.name))
            .with_topic_authorized_operations(self.operations());
        (told, rows)
    }

    fn operations(&self) -> i32 {
        if self.operations && self.call.version >= 8 { TOPIC_OPERATIONS } else { NOT_ASKED }
    }

    fn unknown(&self, row: MetadataResponseTopic, error: ErrorCode) -> Told {
        (row.with_error_code(self.call.error(error)), Rows::new(self.call.version, 0))
    }

    fn unknown_id(&self, id: TopicId) -> Told {
        self.unknown(MetadataResponseTopic::default().with_name(None).with_topic_id(uuid(id)), ErrorCode::UnknownTopicId)
    }

    fn unknown_name(&self, name: &str, valid: bool) -> Told {
        let error = if valid { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::InvalidTopicException };
        let row = MetadataResponseTopic::default()
            .with_name(Some(topic_name(name)))
            .with_is_internal(is_internal(name))
            .with_topic_authorized_operations(self.operations());
        self.unknown(row, error)
    }

    fn partition(&self, index: i32, partition: &Partition, rows: &mut Rows) {
        let listed = |ids: &'_ [BrokerId]| -> Vec<BrokerId> { self.nodes.alive_of(ids).collect() };
        let (replicas, isr) = match self.call.version {
            0 => (Cow::Owned(listed(&partition.replicas)), Cow::Owned(listed(&partition.isr))),
            _ => (Cow::Borrowed(partition.replicas.as_slice()), Cow::Borrowed(partition.isr.as_slice())),
        };
        let leader = self.nodes.leader(partition);
        let error = match leader {
            Some(_) if replicas.len() < partition.replicas.len() || isr.len() < partition.isr.len() => ErrorCode::ReplicaNotAvailable,
            Some(_) => ErrorCode::None,
            None if self.call.version >= 6 && self.nodes.get(partition.leader).is_some() => ErrorCode::ListenerNotFound,
            None => ErrorCode::LeaderNotAvailable,
        };
        rows.push(Row {
            error: self.call.error(error),
            index,
            leader: leader.unwrap_or(BrokerId::NONE),
            leader_epoch: partition.leader_epoch,
            replicas: &replicas,
            isr: &isr,
            offline: self.nodes.offline(partition),
        });
    }
}

fn node(id: BrokerId) -> messages::BrokerId {
    messages::BrokerId(id.0)
}

/// Has the controller make topics, with the counts this broker was given, or else the controller's. Nobody waits: the client asks again.
fn create(cx: &Cx, names: Vec<String>) {
    let names: Vec<String> = CREATING.with_borrow_mut(|creating| {
        names.into_iter().filter(|name| creating.len() < MAX_CREATING && creating.insert(name.clone())).collect()
    });
    if names.is_empty() {
        return;
    }
    let config = &cx.broker.config;
    let partitions = if config.given.contains_key("num.partitions") { config.num_partitions } else { -1 };
    let given = config.given.contains_key("default.replication.factor");
    let replication_factor = if given { config.default_replication_factor as i16 } else { -1 };
    let topic =
        |name: &String| NewTopic { name: name.clone(), partitions, replication_factor, assignments: Vec::new(), configs: Vec::new() };
    let request = Request::CreateTopics { topics: names.iter().map(topic).collect(), validate_only: false };
    let cx = cx.clone();
    actix::spawn(async move {
        let made = ask::controller(&cx, request, None).await;
        CREATING.with_borrow_mut(|creating| creating.retain(|name| !names.contains(name)));
        let Ok(controller::Answer::CreateTopics(made)) = made else {
            return tracing::warn!(topics = names.len(), "topics that clients asked for could not be made: no answer from the controller");
        };
        for (name, refusal) in made.into_iter().filter_map(|(name, result)| Some((name, result.err()?))) {
            // Somebody else was faster.
            if refusal.why != Why::TopicAlreadyExists {
                tracing::warn!(topic = name, "a topic that a client asked for could not be made: {refusal}");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::answer::tests::read;
    use super::*;
    use crate::api::testkit::{broker, call, image_of, partition};
    use crate::core::controller::Broker;
    use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
    use std::time::Duration;

    fn image() -> Image {
        let fenced = Broker { fenced: true, ..broker(3) };
        let mut without = broker(4);
        without.endpoints.clear();
        let good = vec![partition(1, &[1, 2], &[1, 2])];
        let bad = vec![partition(-1, &[3], &[3]), partition(4, &[4, 1], &[4]), partition(1, &[1, 3], &[1, 3])];
        image_of([broker(1), broker(2), fenced, without], [("good", good), ("bad", bad)])
    }

    fn names(names: &[&str]) -> MetadataRequest {
        let topics = names.iter().map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name)))).collect();
        MetadataRequest::default().with_topics(Some(topics))
    }

    fn answer(version: i16, request: MetadataRequest) -> (MetadataResponse, Vec<String>) {
        let (answer, missing) = describe(&call(SPEC, version), &image(), "PLAINTEXT", request);
        (read(&answer, version), missing)
    }

    fn rows(answer: &MetadataResponse) -> Vec<(Option<String>, i16)> {
        answer.topics.iter().map(|topic| (topic.name.as_ref().map(|name| name.to_string()), topic.error_code)).collect()
    }

    #[test]
    fn every_version_can_be_written() {
        for request in [names(&["good", "bad", "none", "?"]), names(&[])] {
            let request = request.with_include_topic_authorized_operations(true).with_include_cluster_authorized_operations(true);
            (SPEC.min..=SPEC.max).for_each(|version| drop(answer(version, request.clone())));
        }
        let topic = MetadataRequestTopic::default().with_topic_id(uuid::Uuid::from_u128(7)).with_name(None);
        let by_id = MetadataRequest::default().with_topics(Some(vec![topic]));
        (10..=SPEC.max).for_each(|version| drop(answer(version, by_id.clone())));
    }

    #[test]
    fn all_topics_or_none() {
        let some = |answer: &MetadataResponse| !answer.topics.is_empty();
        assert!(some(&answer(0, names(&[])).0));
        assert!(!some(&answer(1, names(&[])).0));
        assert!(some(&answer(1, MetadataRequest::default().with_topics(None)).0));
        assert_eq!(answer(5, names(&[])).0.brokers.iter().map(|b| b.node_id.0).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn names_are_known_unknown_or_bad() {
        let (answer, missing) = answer(9, names(&["none", "good", "none", "a b", "__consumer_offsets"]));
        let row = |name: &str, error| (Some(name.to_owned()), error);
        assert_eq!(rows(&answer), [row("none", 3), row("good", 0), row("a b", 17), row("__consumer_offsets", 3)]);
        assert_eq!(missing, ["none"]);
        assert!(answer.topics[3].is_internal);
    }

    #[test]
    fn ids_are_for_version_12() {
        let topic = |id: u128| MetadataRequestTopic::default().with_name(None).with_topic_id(uuid::Uuid::from_u128(id));
        let request = MetadataRequest::default().with_topics(Some(vec![topic(100), topic(7), topic(100)]));
        let (good, missing) = answer(12, request.clone());
        assert_eq!(rows(&good), [(None, 100), (Some("good".into()), 0)]);
        assert!(missing.is_empty());
        let (refused, _) = answer(11, request);
        assert_eq!((rows(&refused)[0].1, refused.brokers.len()), (42, 0));
        let nameless = MetadataRequest::default().with_topics(Some(vec![topic(0)]));
        assert_eq!(answer(13, nameless).0.error_code, 42);
    }

    #[test]
    fn what_is_wrong_with_a_leader_depends_on_the_version() {
        for (version, errors) in [(0, [5, 5, 9]), (5, [5, 5, 0]), (6, [5, 72, 0])] {
            let (answer, _) = answer(version, names(&["bad"]));
            assert_eq!(answer.topics[0].partitions.iter().map(|p| p.error_code).collect::<Vec<_>>(), errors, "v{version}");
        }
        let (answer, _) = answer(7, names(&["bad"]));
        let last = &answer.topics[0].partitions[2];
        assert_eq!((last.leader_epoch, last.replica_nodes.len(), last.offline_replicas.clone()), (5, 2, vec![messages::BrokerId(3)]));
        assert_eq!(answer.topics[0].partitions[1].leader_id.0, -1);
    }

    #[test]
    fn operations_only_if_asked_for() {
        let asked = |version| {
            let request =
                names(&["good"]).with_include_topic_authorized_operations(true).with_include_cluster_authorized_operations(version <= 10);
            let (answer, _) = answer(version, request);
            (answer.topics[0].topic_authorized_operations, answer.cluster_authorized_operations)
        };
        assert_eq!([8, 10, 11].map(asked), [(3576, 8096), (3576, 8096), (3576, i32::MIN)]);
        assert_eq!(answer(8, names(&["good"])).0.topics[0].topic_authorized_operations, i32::MIN);
    }

    /// Not a benchmark: a bound that only a change of the cost's order breaks, also without optimisation.
    #[test]
    fn ten_thousand_partitions_are_cheap() {
        let image = image_of([broker(1)], [("big", vec![partition(1, &[1], &[1]); 10_000])]);
        let call = call(SPEC, 12);
        let started = crate::rt::clock::moment();
        let (answer, _) = describe(&call, &image, "PLAINTEXT", MetadataRequest::default().with_topics(None));
        let took = started.elapsed();
        assert_eq!(read(&answer, 12).topics[0].partitions.len(), 10_000);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

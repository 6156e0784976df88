//! From a Fetch request to partitions and back: what is named, who is asked, and what the answers come to.

use super::limits::{Budget, Readable};
use super::reply::{Records, Row};
use super::{Cx, Params, Wanted};
use crate::actors::partition::messages::{FetchWait, Leadership, Read, ReadAnswer, ReadRefused};
use crate::api::partitions::{gone};
use crate::core::controller::{Image, Topic};
use crate::core::fetch_session::{Key, TopicRef};
use crate::core::types::{Epoch, Isolation, Offset, Reader, TopicPartition};
use crate::rt::{Answer, Tell, port};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{FetchRequest, TopicName};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Below so many partitions, comparing each with each is quicker than hashing.
const FEW: usize = 8;

/// The partitions that a request names. One that is named again keeps its place and takes the later parameters.
pub fn wanted(image: &Image, request: &FetchRequest, by_id: bool) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::with_capacity(request.topics.iter().map(|topic| topic.partitions.len()).sum());
    for named in &request.topics {
        let topic = topic_ref(image, &named.topic, named.topic_id, by_id);
        wanted.extend(named.partitions.iter().map(|row| {
            let params = Params {
                offset: Offset(row.fetch_offset),
                max_bytes: row.partition_max_bytes,
                current_epoch: Epoch(row.current_leader_epoch),
                last_fetched_epoch: Epoch(row.last_fetched_epoch),
            };
            Wanted { key: Key { topic: topic.clone(), partition: row.partition }, params, slot: 0 }
        }));
    }
    if repeats(&wanted) { without_repeats(wanted) } else { wanted }
}

fn repeats(wanted: &[Wanted]) -> bool {
    if wanted.len() <= FEW {
        return (1..wanted.len()).any(|at| wanted[..at].iter().any(|other| other.key == wanted[at].key));
    }
    let mut seen = std::collections::HashSet::with_capacity(wanted.len());
    !wanted.iter().all(|wanted| seen.insert(&wanted.key))
}

fn without_repeats(wanted: Vec<Wanted>) -> Vec<Wanted> {
    let mut places: HashMap<Key, usize> = HashMap::with_capacity(wanted.len());
    let mut kept: Vec<Wanted> = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        match places.get(&wanted.key) {
            Some(place) => kept[*place].params = wanted.params,
            None => {
                places.insert(wanted.key.clone(), kept.len());
                kept.push(wanted);
            }
        }
    }
    kept
}

/// The partitions that a request no longer wants in its session.
pub fn forgotten(request: &FetchRequest, by_id: bool) -> Vec<Key> {
    let topics = request.forgotten_topics_data.iter();
    let keys = topics.flat_map(|named| {
        let topic = if by_id { TopicRef::Id(crate::api::terms::topic_id(named.topic_id)) } else { TopicRef::Name(Arc::from(named.topic.as_str())) };
        named.partitions.iter().map(move |partition| Key { topic: topic.clone(), partition: *partition })
    });
    keys.collect()
}

/// The metadata's own copy of a name that exists is shared, not copied.
fn topic_ref(image: &Image, name: &TopicName, id: Uuid, by_id: bool) -> TopicRef {
    if by_id {
        return TopicRef::Id(crate::api::terms::topic_id(id));
    }
    TopicRef::Name(image.topic_by_name(name.as_str()).map_or_else(|| Arc::from(name.as_str()), |topic| topic.name.clone()))
}

/// Partitions to read, and how.
pub struct Reading {
    partitions: Vec<(Wanted, TopicPartition)>,
    isolation: Isolation,
    max_bytes: u32,
}

/// One round of answers.
pub struct Round {
    /// A row for each partition, in order.
    pub rows: Vec<Row>,
    /// Bytes of records in them.
    pub bytes: i64,
    /// Something must be told at once.
    urgent: bool,
}

impl Round {
    /// Whether the client can wait for more: no row has an error or a diverging epoch, or stops at the end of a segment.
    pub fn may_wait(&self) -> bool {
        !self.urgent
    }
}

type Asked = Option<Answer<Result<ReadAnswer, ReadRefused>>>;

/// Sorts out what cannot be read, and counts the rest.
pub fn sort(
    cx: &Cx,
    image: &Image,
    wanted: Vec<Wanted>,
    isolation: Isolation,
    max_bytes: u32,
    follower: bool,
) -> (Reading, Vec<(Wanted, Row)>) {
    let mut partitions = Vec::with_capacity(wanted.len());
    let mut refused = Vec::new();
    let mut topics = TopicRun { image, cx, topic: None, reads: 0 };
    for wanted in wanted {
        let index = wanted.key.partition;
        let found = match topics.find(&wanted.key.topic) {
            None => Err(unknown(&wanted.key.topic)),
            Some(topic) if topic.partition(index).is_none() => Err(ErrorCode::UnknownTopicOrPartition),
            // No follower is known yet; one that says what epoch it is in asks again, one that does not looks for the leader.
            Some(_) if follower && wanted.params.current_epoch != Epoch::NONE => Err(ErrorCode::UnknownLeaderEpoch),
            Some(_) if follower => Err(ErrorCode::NotLeaderOrFollower),
            Some(topic) => Ok(TopicPartition { topic: topic.id, partition: index }),
        };
        match found {
            Ok(at) => {
                topics.reads += 1;
                partitions.push((wanted, at));
            }
            Err(error) => {
                let mut row = Row::failed(wanted.key.topic.clone(), index, error);
                row.lists_aborted = true;
                refused.push((wanted, row));
            }
        }
    }
    topics.count();
    (Reading { partitions, isolation, max_bytes }, refused)
}

fn unknown(topic: &TopicRef) -> ErrorCode {
    match topic {
        TopicRef::Name(_) => ErrorCode::UnknownTopicOrPartition,
        TopicRef::Id(_) => ErrorCode::UnknownTopicId,
    }
}

/// Partitions of a topic mostly follow each other: the topic is looked up, and its reads are counted, once for all of them.
struct TopicRun<'a> {
    cx: &'a Cx,
    image: &'a Image,
    topic: Option<(TopicRef, Option<&'a Arc<Topic>>)>,
    reads: u64,
}

impl<'a> TopicRun<'a> {
    fn find(&mut self, topic: &TopicRef) -> Option<&'a Arc<Topic>> {
        if let Some((last, found)) = &self.topic
            && last == topic
        {
            return *found;
        }
        self.count();
        let found = match topic {
            TopicRef::Name(name) => self.image.topic_by_name(name),
            TopicRef::Id(id) => self.image.topic(*id),
        };
        self.topic = Some((topic.clone(), found));
        found
    }

    fn count(&mut self) {
        if let Some((_, Some(topic))) = &self.topic {
            self.cx.broker.metrics.topics.topic(&topic.name).total_fetch_requests.add(self.reads);
        }
        self.reads = 0;
    }
}

impl Reading {
    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// What was wanted of the partitions, in order.
    pub fn into_wanted(self) -> impl Iterator<Item = Wanted> {
        self.partitions.into_iter().map(|(wanted, _)| wanted)
    }

    /// Asks every partition.
    pub fn ask(&self, cx: &Cx, wait: Option<&Arc<FetchWait>>) -> Vec<Asked> {
        let ask = |(wanted, at): &(Wanted, TopicPartition)| {
            let params = &wanted.params;
            cx.broker.routes.with(*at, |route| {
                let (reply, answer) = port();
                route.partition.tell(Read {
                    from: params.offset,
                    max_bytes: self.max_bytes.min(params.max_bytes.max(0) as u32),
                    reader: Reader::Consumer(self.isolation),
                    current_epoch: params.current_epoch,
                    last_fetched_epoch: params.last_fetched_epoch,
                    wait: wait.cloned(),
                    reply,
                });
                answer
            })
        };
        self.partitions.iter().map(ask).collect()
    }

    /// Waits for all answers and makes rows of them, within the limits.
    pub async fn collect(&self, cx: &Cx, asked: Vec<Asked>) -> Round {
        let mut budget = Budget::new(self.max_bytes);
        let mut round = Round { rows: Vec::with_capacity(asked.len()), bytes: 0, urgent: false };
        for ((wanted, at), asked) in self.partitions.iter().zip(asked) {
            let answer = match asked {
                Some(answer) => answer.await.unwrap_or(Err(ReadRefused::Gone)),
                None => Err(ReadRefused::Gone),
            };
            let row = match answer {
                Ok(answer) => {
                    round.urgent |= answer.diverging.is_some() || answer.range.as_ref().is_some_and(|range| range.continues);
                    self.row(&mut budget, wanted, answer)
                }
                Err(refused) => {
                    round.urgent = true;
                    refused_row(&cx.image(), *at, wanted, &refused)
                }
            };
            round.bytes += i64::from(row.bytes());
            round.rows.push(row);
        }
        round
    }

    fn row(&self, budget: &mut Budget, wanted: &Wanted, answer: ReadAnswer) -> Row {
        let mut row = Row {
            high_watermark: answer.high_watermark,
            last_stable: answer.last_stable,
            log_start: answer.log_start,
            diverging: answer.diverging,
            lists_aborted: self.isolation == Isolation::ReadCommitted && answer.diverging.is_none(),
            ..Row::failed(wanted.key.topic.clone(), wanted.key.partition, ErrorCode::None)
        };
        if let Some(range) = answer.range {
            let limit = wanted.params.max_bytes.max(0) as u32;
            let taken = budget.take(Readable { len: range.len, first: range.first_batch_len, limit });
            // Kafka leaves the list out with the records that did not fit.
            row.lists_aborted &= !taken.cut;
            row.records = (taken.len > 0).then_some(Records { file: range.file, position: range.position, len: taken.len });
        }
        row
    }
}

fn refused_row(image: &Image, at: TopicPartition, wanted: &Wanted, refused: &ReadRefused) -> Row {
    let error = match refused {
        ReadRefused::Gone => gone(image, at),
        refused => refused.into(),
    };
    let leader = match refused {
        ReadRefused::NotLeader(leadership) | ReadRefused::FencedEpoch(leadership) => Some(*leadership),
        ReadRefused::Gone => image.partition(at).map(|known| Leadership { leader: known.leader, epoch: known.leader_epoch }),
        _ => None,
    };
    Row { leader, ..Row::failed(wanted.key.topic.clone(), wanted.key.partition, error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms;
    use crate::api::testkit::{image_of, partition};
    use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
    use uuid::Uuid;

    /// Name, id, and index and offset of each partition.
    type Named<'a> = (&'a str, u128, &'a [(i32, i64)]);

    fn request(topics: &[Named]) -> FetchRequest {
        let topics = topics.iter().map(|(name, id, rows)| {
            let rows = rows.iter().map(|(index, offset)| FetchPartition::default().with_partition(*index).with_fetch_offset(*offset));
            FetchTopic::default().with_topic(terms::topic_name(name)).with_topic_id(Uuid::from_u128(*id)).with_partitions(rows.collect())
        });
        FetchRequest::default().with_topics(topics.collect())
    }

    fn named(wanted: &[Wanted]) -> Vec<(String, i32, i64)> {
        wanted.iter().map(|w| (format!("{:?}", w.key.topic), w.key.partition, w.params.offset.0)).collect()
    }

    #[test]
    fn a_partition_named_again_keeps_its_place_and_takes_the_later_offset() {
        let image = image_of([], [("t", vec![partition(1, &[1], &[1])])]);
        let name = |topic: &str, index, offset| (format!("Name({topic:?})"), index, offset);
        let few = request(&[("t", 0, &[(0, 1), (1, 2), (0, 3)]), ("u", 0, &[(0, 4)]), ("t", 0, &[(1, 5)])]);
        assert_eq!(named(&wanted(&image, &few, false)), [name("t", 0, 3), name("t", 1, 5), name("u", 0, 4)]);
        let rows: Vec<(i32, i64)> = (0..20).chain(5..7).map(|n| (n % 20, i64::from(n))).collect();
        assert_eq!(named(&wanted(&image, &request(&[("t", 0, &rows)]), false)).len(), 20);
    }

    #[test]
    fn topics_are_named_as_the_version_has_it() {
        let image = image_of([], [("t", vec![partition(1, &[1], &[1])])]);
        let both = request(&[("t", 100, &[(0, 1)])]);
        assert_eq!(wanted(&image, &both, false)[0].key.topic, TopicRef::Name(Arc::from("t")));
        assert_eq!(wanted(&image, &both, true)[0].key.topic, TopicRef::Id(crate::core::types::Id(100)));
        let forget = ForgottenTopic::default().with_topic(terms::topic_name("t")).with_topic_id(Uuid::from_u128(100)).with_partitions(vec![3, 4]);
        let both = both.with_forgotten_topics_data(vec![forget]);
        let keys = |by_id| forgotten(&both, by_id).into_iter().map(|key| (key.topic, key.partition)).collect::<Vec<_>>();
        assert_eq!(keys(false), [3, 4].map(|index| (TopicRef::Name(Arc::from("t")), index)));
        assert_eq!(keys(true), [3, 4].map(|index| (TopicRef::Id(crate::core::types::Id(100)), index)));
    }
}

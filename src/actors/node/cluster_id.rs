//! Which cluster a node belongs to, where it is one of several: before its directories are touched it asks the voters.
//!
//! At the first start, without `storage format`, the voter with the lowest id makes the cluster's id, and everybody else takes it from a voter. A
//! directory that was wiped, or is another cluster's, does not get in like that: a voter without its log could give votes twice.

use crate::actors::quorum::Voter;
use crate::cli::random_id;
use crate::core::types::BrokerId;
use crate::peer::{NoAnswer, Peer, Question, Settings};
use crate::wire::guard;
use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse, DescribeQuorumRequest, DescribeQuorumResponse, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::sync::oneshot;

/// A voter that does not answer within this time is not there, as far as this start is concerned.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long to wait before the voters are asked again.
const AGAIN: Duration = Duration::from_millis(50);
/// Between two lines that say what is waited for, in rounds of asking.
const LOGGED_EVERY: u32 = 200;
/// Bytes of an answer at most.
const FRAME_MAX: usize = 1 << 20;

/// The kind of endpoint that is asked: a controller's.
const CONTROLLERS: i8 = 2;

/// A node that may not join.
#[derive(Debug, thiserror::Error)]
pub enum Stranger {
    /// Its directories belong elsewhere.
    #[error(
        "the log directories belong to cluster {own}, but the voters of controller.quorum.voters to cluster {theirs}: these are another cluster's directories, or the voters of another are named; point log.dirs to this cluster's directories, or to empty ones"
    )]
    Foreign {
        /// What the directories say.
        own: String,
        /// What the voters say.
        theirs: String,
    },
    /// Its directories are gone.
    #[error(
        "the log directories are empty, but node {node} was a voter of cluster {theirs} already: a voter that forgot its votes and its log endangers the metadata; bring the directories back, or, if they are lost and a majority of the other voters is up to date, run `understudy storage format -t {theirs} -c FILE`"
    )]
    Wiped {
        /// This node.
        node: i32,
        /// The cluster's id.
        theirs: String,
    },
}

/// The voters, as a node that starts sees them.
pub struct Asking<'a> {
    /// This node.
    pub me: BrokerId,
    /// The voters.
    pub voters: &'a [Voter],
}

/// What one voter says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    cluster: String,
    /// It has heard this node as a voter.
    knows_me: bool,
}

/// What to do with what the voters say.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Join(String),
    Make,
    Wait,
}

impl Asking<'_> {
    /// The id of the cluster; `own` is what the directories say. Waits for a voter that knows, if this node neither knows nor decides.
    pub async fn agree(&self, own: Option<String>) -> Result<String, Stranger> {
        let mut rounds = 0u32;
        loop {
            let told = join_all(self.voters.iter().filter(|voter| voter.id != self.me).map(|voter| self.ask(voter))).await;
            let told: Vec<Told> = told.into_iter().flatten().collect();
            match self.judge(own.as_deref(), &told)? {
                Verdict::Join(id) => return Ok(id),
                Verdict::Make => return Ok(random_id().to_string()),
                Verdict::Wait => {}
            }
            if rounds.is_multiple_of(LOGGED_EVERY) {
                tracing::info!("the log directories are empty: waiting for a voter that knows the cluster's id");
            }
            rounds += 1;
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn judge(&self, own: Option<&str>, told: &[Told]) -> Result<Verdict, Stranger> {
        let Some(own) = own else {
            let Some(first) = told.first() else {
                let lowest = self.voters.iter().map(|voter| voter.id).min();
                return Ok(if lowest == Some(self.me) { Verdict::Make } else { Verdict::Wait });
            };
            let lowest = self.voters.iter().all(|voter| voter.id >= self.me) && self.voters.iter().any(|voter| voter.id == self.me);
            // The id that others have was made by the lowest: so that one had directories once.
            if lowest || told.iter().any(|told| told.knows_me) {
                return Err(Stranger::Wiped { node: self.me.0, theirs: first.cluster.clone() });
            }
            return Ok(Verdict::Join(first.cluster.clone()));
        };
        match told.first() {
            Some(first) if told.iter().all(|told| told.cluster != own) => {
                Err(Stranger::Foreign { own: own.to_owned(), theirs: first.cluster.clone() })
            }
            _ => Ok(Verdict::Join(own.to_owned())),
        }
    }

    async fn ask(&self, voter: &Voter) -> Option<Told> {
        let settings = Settings {
            address: format!("{}:{}", voter.host, voter.port),
            client_id: format!("start-{}", self.me.0),
            connect: PATIENCE,
            patience: PATIENCE,
            max_frame: FRAME_MAX,
        };
        let peer = Peer::new(settings, || {});
        let cluster: DescribeClusterResponse =
            question(&peer, 60, 1..=2, DescribeClusterRequest::default().with_endpoint_type(CONTROLLERS)).await?;
        if cluster.error_code != 0 || cluster.cluster_id.is_empty() {
            return None;
        }
        let topic = TopicData::default()
            .with_topic_name(TopicName(StrBytes::from_static_str(crate::wire::quorum::TOPIC)))
            .with_partitions(vec![PartitionData::default().with_partition_index(0)]);
        let quorum: Option<DescribeQuorumResponse> =
            question(&peer, 55, 0..=2, DescribeQuorumRequest::default().with_topics(vec![topic])).await;
        let rows = quorum.into_iter().flat_map(|quorum| quorum.topics).flat_map(|topic| topic.partitions);
        let mut voters = rows.flat_map(|row| row.current_voters);
        let knows_me = voters.any(|state| state.replica_id.0 == self.me.0 && state.log_end_offset > 0);
        Some(Told { cluster: cluster.cluster_id.to_string(), knows_me })
    }
}

async fn question<Q: Encodable + 'static, A: Decodable>(peer: &Peer, key: i16, versions: RangeInclusive<i16>, body: Q) -> Option<A> {
    let (tell, told) = oneshot::channel::<Result<(i16, Bytes), NoAnswer>>();
    peer.ask(Question {
        key,
        versions,
        body: Box::new(move |version| {
            let mut out = BytesMut::new();
            body.encode(&mut out, version).map_err(|e| e.to_string())?;
            Ok(out)
        }),
        answer: Box::new(move |answer| {
            // Nobody listens if the start was given up.
            let _ = tell.send(answer);
        }),
    });
    let (version, mut answer) = told.await.ok()?.ok()?;
    guard::check_answer(key, version, &answer).ok()?;
    A::decode(&mut answer, version).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voters() -> Vec<Voter> {
        [1, 2, 3].map(|id| Voter { id: BrokerId(id), host: "h".into(), port: 1 }).into()
    }

    fn told(cluster: &str, knows_me: bool) -> Told {
        Told { cluster: cluster.into(), knows_me }
    }

    #[test]
    fn who_makes_the_id_and_who_takes_it() {
        let voters = voters();
        let judge = |me, own: Option<&str>, told: &[Told]| Asking { me: BrokerId(me), voters: &voters }.judge(own, told);
        let join = |id: &str| Verdict::Join(id.into());
        assert_eq!(judge(1, None, &[]).unwrap(), Verdict::Make);
        assert_eq!([2, 3, 9].map(|me| judge(me, None, &[]).unwrap()), [Verdict::Wait, Verdict::Wait, Verdict::Wait]);
        assert_eq!([2, 9].map(|me| judge(me, None, &[told("a", false)]).unwrap()), [join("a"), join("a")]);
        assert_eq!(judge(1, Some("a"), &[]).unwrap(), join("a"));
        assert_eq!(judge(3, Some("a"), &[told("b", false), told("a", true)]).unwrap(), join("a"), "one of the others is the stranger");
    }

    #[test]
    fn the_wiped_and_the_foreign_are_told_both_ids() {
        let voters = voters();
        let refused = |me, own: Option<&str>, said: &[Told]| {
            Asking { me: BrokerId(me), voters: &voters }.judge(own, said).expect_err("a stranger").to_string()
        };
        assert!(refused(1, None, &[told("a", false)]).contains("storage format -t a"));
        assert!(refused(2, None, &[told("a", false), told("a", true)]).contains("node 2 was a voter of cluster a"));
        let foreign = refused(2, Some("mine"), &[told("theirs", true)]);
        assert!(foreign.contains("cluster mine") && foreign.contains("cluster theirs"), "{foreign}");
    }
}

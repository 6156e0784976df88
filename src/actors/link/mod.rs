//! `Link`: this broker's tie to the metadata. Replays committed records into the image, has the shards follow, publishes it; carries
//! requests to the active controller, on this node or another; keeps this broker a member; hands out producer ids.
//!
//! * Lifecycle: started by the node before the quorum, stopped with the process; a panic ends the process.
//! * Thread: control. Told by: `Quorum` (what is committed), shards (what they applied), handlers (requests for the controller).
//! * An image is published only after every shard has applied it, so a leader is named only when it can serve.

mod arrivals;
mod ids;
mod membership;
mod remote;

pub use arrivals::{Arrivals, Session};
pub use ids::NextProducerId;
pub use membership::{Join, Leave};
pub use remote::Speaking;

use super::controller::{Controller, Decide, NotActive, SessionEnded};
use super::shard::{Apply, Shard};
use crate::core::controller::records::{BrokerEpoch, ResourceType};
use crate::core::controller::request::{Answer, Request};
use crate::core::controller::{Delta, Image, Record};
use crate::core::types::{BrokerId, Epoch, Millis, Offset};
use crate::rt::{Essential, Gone, Reply, Tell, clock};
use actix::prelude::*;
use arc_swap::ArcSwap;
use bytes::Bytes;
use ids::Ids;
use membership::Membership;
use remote::Remote;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Duration;

/// See the module.
pub struct Link {
    node: BrokerId,
    image: Image,
    published: Arc<ArcSwap<Image>>,
    shards: Vec<Addr<Shard>>,
    controller: Addr<Controller>,
    /// Told when the broker's dynamic settings change.
    reconfigured: Box<dyn Fn(&Image)>,
    /// Images that some shard has not applied yet, oldest first.
    applying: VecDeque<Applying>,
    /// Whether this node is the only voter.
    sole: bool,
    /// The node whose controller is active, as handlers read it; -1 if nobody knows.
    leader: Arc<AtomicI32>,
    speaking: Speaking,
    /// The way to the controller if another node leads.
    remote: Option<Remote>,
    membership: Membership,
    ids: Ids,
    _essential: Essential,
}

/// What a link needs besides the image.
pub struct Parts {
    /// This node.
    pub node: BrokerId,
    /// Whether it is the only voter.
    pub sole: bool,
    /// Where images are published.
    pub published: Arc<ArcSwap<Image>>,
    /// Who has to apply them first.
    pub shards: Vec<Addr<Shard>>,
    /// The controller of this node.
    pub controller: Addr<Controller>,
    /// Called when the broker's dynamic settings may have changed, before the image is published.
    pub reconfigured: Box<dyn Fn(&Image)>,
    /// Where to say which node's controller is active.
    pub leader: Arc<AtomicI32>,
    /// How controllers on other nodes are spoken to.
    pub speaking: Speaking,
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat: Duration,
}

/// What the controller answered, if it did.
pub type Answered = Result<Answer, Unavailable>;

struct Applying {
    image: Arc<Image>,
    /// When it was committed.
    committed: Millis,
    /// Whether a broker's state is among the changes.
    brokers: bool,
    missing: usize,
}

/// A batch of metadata records is committed. From: `Quorum`. Lost: never, they share a thread and a fate.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Committed {
    /// Offset of the first record.
    pub base: Offset,
    /// The quorum's epoch in which it was appended.
    pub epoch: Epoch,
    /// Offset of the batch's last record; control records count.
    pub last: Offset,
    /// The records; empty for a control batch.
    pub records: Arc<Vec<Record>>,
}

/// Another image takes the place of all that was committed so far. From: `Quorum`, when it loaded a snapshot. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ReplaceImage {
    /// The image.
    pub image: Box<Image>,
}

/// A shard has applied the oldest image it was told of. From: the shard. Lost: never; shards end with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ShardApplied {
    offset: Offset,
}

/// Ask the active controller. From: handlers. Lost: answered `Gone`; the client repeats.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Forward {
    /// What to ask.
    pub request: Request,
    /// The answer, given when its records are applied here.
    pub reply: Reply<Result<Answer, Unavailable>>,
}

/// The controller cannot be reached; worth repeating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no active controller")]
pub struct Unavailable;

impl From<NotActive> for Unavailable {
    fn from(_: NotActive) -> Unavailable {
        Unavailable
    }
}

/// The image with everything committed so far. From: `Quorum`, for a snapshot. Lost: the snapshot is due again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct TakeImage {
    /// The answer.
    pub reply: Reply<Arc<Image>>,
}

/// Another node leads the quorum, or nobody that is known. From: `Quorum`. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct LeaderIs {
    /// Who.
    pub leader: Option<BrokerId>,
}

/// Ask this node's own controller, whoever is active. From: handlers of what controllers are asked. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AskHere {
    /// What.
    pub request: Request,
    /// The answer.
    pub reply: Reply<Result<Answer, NotActive>>,
}

/// Carry a client's request to the controller of another node. From: `api::carry`. Lost: answered `Gone`, and asked again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Carry {
    /// The request with its header.
    pub frame: Bytes,
    /// The client.
    pub from: IpAddr,
    /// The answer with its header.
    pub reply: Reply<Result<Bytes, Unavailable>>,
}

/// A broker's last connection to this node's controller is closed. From: connections. Lost: the broker is fenced for silence, later.
#[derive(Message)]
#[rtype(result = "()")]
pub struct SessionClosed {
    broker: BrokerId,
    epoch: BrokerEpoch,
    at: Millis,
}

/// The connection to the controller broke. From: the connection. Lost: the next heartbeat is due in time anyway.
#[derive(Message)]
#[rtype(result = "()")]
pub struct RemoteClosed {
    leader: BrokerId,
}

impl Link {
    /// A link that starts from the image in the log, which no shard knows yet.
    pub fn new(image: Image, parts: Parts) -> Link {
        Link {
            node: parts.node,
            image,
            published: parts.published,
            shards: parts.shards,
            controller: parts.controller,
            reconfigured: parts.reconfigured,
            applying: VecDeque::new(),
            sole: parts.sole,
            leader: parts.leader,
            speaking: parts.speaking,
            remote: None,
            membership: Membership::new(parts.heartbeat),
            ids: Ids::default(),
            _essential: Essential("link"),
        }
    }

    /// Whether no other node could take part in anything: no other voter, no other broker.
    fn is_alone(&self) -> bool {
        self.sole && self.image.brokers().all(|broker| broker.id == self.node)
    }

    /// Asks the active controller.
    fn ask(&mut self, request: Request, reply: Reply<Answered>) {
        match &self.remote {
            Some(remote) => remote.ask(request, reply),
            // This node leads, or nobody is known to: its controller knows.
            None => {
                let answer = Reply::with(move |outcome: Result<Result<Answer, NotActive>, Gone>| match outcome {
                    Ok(answer) => reply.send(answer.map_err(Unavailable::from)),
                    Err(Gone) => reply.send(Err(Unavailable)),
                });
                self.controller.tell(Decide { request, reply: answer });
            }
        }
    }

    /// Tells every shard what changed; the image is published when all have answered.
    fn spread(&mut self, delta: Delta, ctx: &mut Context<Self>) {
        if delta.configs.iter().any(|resource| resource.kind == ResourceType::Broker) {
            (self.reconfigured)(&self.image);
        }
        let (image, delta) = (Arc::new(self.image.clone()), Arc::new(delta));
        let offset = image.offset();
        self.applying.push_back(Applying {
            image: image.clone(),
            committed: clock::now(),
            brokers: !delta.brokers.is_empty(),
            missing: self.shards.len(),
        });
        for shard in &self.shards {
            let reply = Reply::to(ctx.address(), move |_| ShardApplied { offset });
            shard.tell(Apply { image: image.clone(), delta: delta.clone(), reply });
        }
    }
}

impl Actor for Link {
    type Context = Context<Self>;

    /// Tells the shards everything that the log held at start.
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spread(everything(&self.image), ctx);
    }
}

/// What an image has over an empty one.
fn everything(image: &Image) -> Delta {
    let mut delta = Delta::default();
    for topic in image.topics() {
        delta.topics_created.insert(topic.id);
        let partitions = topic.partitions.keys();
        delta.partitions.extend(partitions.map(|partition| crate::core::types::TopicPartition { topic: topic.id, partition: *partition }));
    }
    delta.configs.insert(crate::core::controller::ConfigResource::broker_default());
    delta
}

impl Handler<Committed> for Link {
    type Result = ();
    fn handle(&mut self, m: Committed, ctx: &mut Context<Self>) {
        let mut delta = Delta::default();
        for (at, record) in m.records.iter().enumerate() {
            match self.image.apply(m.base + at as i64, record) {
                Ok(change) => delta.note(change),
                // The log is what every node agrees on: a record that cannot be applied is as bad here as anywhere.
                Err(e) => tracing::error!("a committed metadata record contradicts the image and is skipped: {e}"),
            }
        }
        self.image.advance(m.last, m.epoch);
        self.spread(delta, ctx);
    }
}

impl Handler<ReplaceImage> for Link {
    type Result = ();
    fn handle(&mut self, m: ReplaceImage, ctx: &mut Context<Self>) {
        let old = std::mem::replace(&mut self.image, *m.image);
        let mut delta = everything(&self.image);
        delta.topics_created.retain(|id| old.topic(*id).is_none());
        for topic in old.topics().filter(|topic| self.image.topic(topic.id).is_none()) {
            delta.topics_deleted.insert(topic.id, topic.clone());
        }
        delta.configs.extend(self.image.topics().map(|topic| crate::core::controller::ConfigResource::topic(&topic.name)));
        self.spread(delta, ctx);
    }
}

impl Handler<ShardApplied> for Link {
    type Result = ();
    fn handle(&mut self, m: ShardApplied, ctx: &mut Context<Self>) {
        if let Some(applying) = self.applying.iter_mut().find(|applying| applying.image.offset() == m.offset) {
            applying.missing -= 1;
        }
        while self.applying.front().is_some_and(|applying| applying.missing == 0) {
            let Some(Applying { image, committed, brokers, .. }) = self.applying.pop_front() else { return };
            let upto = image.offset();
            self.published.store(image);
            self.controller.tell(super::controller::Published { upto, committed });
            self.membership_follows(brokers, ctx);
        }
    }
}

impl Handler<LeaderIs> for Link {
    type Result = ();
    fn handle(&mut self, m: LeaderIs, ctx: &mut Context<Self>) {
        self.leader.store(m.leader.unwrap_or(BrokerId::NONE).0, Relaxed);
        let another = m.leader.filter(|leader| *leader != self.node);
        // Nobody is known for a moment: the old way is kept, it may come back.
        if m.leader.is_none() || self.remote.as_ref().map(|remote| remote.leader) == another {
            return;
        }
        let link = ctx.address();
        self.remote = another.and_then(|leader| Remote::new(leader, self.node, &self.speaking, move || link.tell(RemoteClosed { leader })));
        self.meet_controller(ctx);
    }
}

impl Handler<RemoteClosed> for Link {
    type Result = ();
    fn handle(&mut self, m: RemoteClosed, ctx: &mut Context<Self>) {
        if self.remote.as_ref().is_some_and(|remote| remote.leader == m.leader) {
            self.meet_controller(ctx);
        }
    }
}

impl Handler<Forward> for Link {
    type Result = ();
    fn handle(&mut self, m: Forward, _: &mut Context<Self>) {
        self.ask(m.request, m.reply);
    }
}

impl Handler<AskHere> for Link {
    type Result = ();
    fn handle(&mut self, m: AskHere, _: &mut Context<Self>) {
        self.controller.tell(Decide { request: m.request, reply: m.reply });
    }
}

impl Handler<Carry> for Link {
    type Result = ();
    fn handle(&mut self, m: Carry, _: &mut Context<Self>) {
        match &self.remote {
            Some(remote) => remote.carry(m.frame, m.from, m.reply),
            None => m.reply.send(Err(Unavailable)),
        }
    }
}

impl Handler<SessionClosed> for Link {
    type Result = ();
    fn handle(&mut self, m: SessionClosed, _: &mut Context<Self>) {
        self.controller.tell(SessionEnded { broker: m.broker, epoch: m.epoch, at: m.at });
    }
}

impl Handler<TakeImage> for Link {
    type Result = ();
    fn handle(&mut self, m: TakeImage, _: &mut Context<Self>) {
        m.reply.send(Arc::new(self.image.clone()));
    }
}

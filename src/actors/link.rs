//! `Link`: this broker's tie to the metadata. Replays committed records into the image, has the shards follow, publishes it; carries
//! requests to the active controller; hands out producer ids.
//!
//! * Lifecycle: started by the node before the quorum, stopped with the process; a panic ends the process.
//! * Thread: control. Told by: `Quorum` (what is committed), shards (what they applied), handlers (requests for the controller).
//! * An image is published only after every shard has applied it, so a leader is named only when it can serve.

use super::controller::{Controller, Decide, NotActive};
use super::shard::{Apply, Shard};
use crate::core::controller::records::ResourceType;
use crate::core::controller::request::{Answer, ProducerIdBlock, Refusal, Request};
use crate::core::controller::{Delta, Image, Record};
use crate::core::types::{BrokerId, Epoch, Millis, Offset};
use crate::rt::{Essential, Gone, Reply, Tell, clock};
use actix::prelude::*;
use arc_swap::ArcSwap;
use std::collections::VecDeque;
use std::sync::Arc;

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
    broker_epoch: i64,
    ids: ProducerIdBlock,
    /// Who waits for a new block of producer ids.
    id_waiters: VecDeque<Reply<Result<i64, Unavailable>>>,
    _essential: Essential,
}

struct Applying {
    image: Arc<Image>,
    /// When it was committed.
    committed: Millis,
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

/// One producer id, never given before. From: `api::init_producer_id`. Lost: answered `Gone`; the client repeats.
#[derive(Message)]
#[rtype(result = "()")]
pub struct NextProducerId {
    /// The answer.
    pub reply: Reply<Result<i64, Unavailable>>,
}

/// The image with everything committed so far. From: `Quorum`, for a snapshot. Lost: the snapshot is due again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct TakeImage {
    /// The answer.
    pub reply: Reply<Arc<Image>>,
}

/// This broker is registered. From: the node. Lost: producer ids stay unavailable.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Registered {
    /// Its broker epoch.
    pub epoch: i64,
}

/// A block of producer ids, or not. From: the controller. Lost: waiters are answered `Gone` with it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct GotProducerIds {
    outcome: Result<Result<Answer, NotActive>, Gone>,
}

impl Link {
    /// A link that starts from the image in the log, which no shard knows yet. `reconfigured` is called when the broker's dynamic settings
    /// may have changed, before the image is published.
    pub fn new(
        node: BrokerId,
        image: Image,
        published: Arc<ArcSwap<Image>>,
        shards: Vec<Addr<Shard>>,
        controller: Addr<Controller>,
        reconfigured: Box<dyn Fn(&Image)>,
    ) -> Link {
        Link {
            node,
            image,
            published,
            shards,
            controller,
            reconfigured,
            applying: VecDeque::new(),
            broker_epoch: -1,
            ids: ProducerIdBlock { first: 0, count: 0 },
            id_waiters: VecDeque::new(),
            _essential: Essential("link"),
        }
    }

    /// Tells every shard what changed; the image is published when all have answered.
    fn spread(&mut self, delta: Delta, ctx: &mut Context<Self>) {
        if delta.configs.iter().any(|resource| resource.kind == ResourceType::Broker) {
            (self.reconfigured)(&self.image);
        }
        let (image, delta) = (Arc::new(self.image.clone()), Arc::new(delta));
        let offset = image.offset();
        self.applying.push_back(Applying { image: image.clone(), committed: clock::now(), missing: self.shards.len() });
        for shard in &self.shards {
            let reply = Reply::to(ctx.address(), move |_| ShardApplied { offset });
            shard.tell(Apply { image: image.clone(), delta: delta.clone(), reply });
        }
    }

    fn next_id(&mut self) -> Option<i64> {
        if self.ids.count == 0 {
            return None;
        }
        let id = self.ids.first;
        self.ids = ProducerIdBlock { first: id + 1, count: self.ids.count - 1 };
        Some(id)
    }

    fn ask_for_ids(&self, ctx: &mut Context<Self>) {
        let request = Request::AllocateProducerIds {
            broker: self.node,
            broker_epoch: crate::core::controller::records::BrokerEpoch(self.broker_epoch),
        };
        let reply = Reply::to(ctx.address(), |outcome| GotProducerIds { outcome });
        self.controller.tell(Decide { request, reply });
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
    fn handle(&mut self, m: ShardApplied, _: &mut Context<Self>) {
        if let Some(applying) = self.applying.iter_mut().find(|applying| applying.image.offset() == m.offset) {
            applying.missing -= 1;
        }
        while self.applying.front().is_some_and(|applying| applying.missing == 0) {
            let Some(Applying { image, committed, .. }) = self.applying.pop_front() else { return };
            let upto = image.offset();
            self.published.store(image);
            self.controller.tell(super::controller::Published { upto, committed });
        }
    }
}

impl Handler<Forward> for Link {
    type Result = ();
    fn handle(&mut self, m: Forward, _: &mut Context<Self>) {
        let reply = m.reply;
        let answer = Reply::with(move |outcome: Result<Result<Answer, NotActive>, Gone>| match outcome {
            Ok(answer) => reply.send(answer.map_err(Unavailable::from)),
            Err(Gone) => reply.send(Err(Unavailable)),
        });
        self.controller.tell(Decide { request: m.request, reply: answer });
    }
}

impl Handler<TakeImage> for Link {
    type Result = ();
    fn handle(&mut self, m: TakeImage, _: &mut Context<Self>) {
        m.reply.send(Arc::new(self.image.clone()));
    }
}

impl Handler<Registered> for Link {
    type Result = ();
    fn handle(&mut self, m: Registered, _: &mut Context<Self>) {
        self.broker_epoch = m.epoch;
    }
}

impl Handler<NextProducerId> for Link {
    type Result = ();
    fn handle(&mut self, m: NextProducerId, ctx: &mut Context<Self>) {
        if let Some(id) = self.next_id() {
            return m.reply.send(Ok(id));
        }
        self.id_waiters.push_back(m.reply);
        if self.id_waiters.len() == 1 {
            self.ask_for_ids(ctx);
        }
    }
}

impl Handler<GotProducerIds> for Link {
    type Result = ();
    fn handle(&mut self, m: GotProducerIds, ctx: &mut Context<Self>) {
        match m.outcome {
            Ok(Ok(Answer::AllocateProducerIds(Ok(block)))) => self.ids = block,
            Ok(Ok(Answer::AllocateProducerIds(Err(Refusal { why, message })))) => {
                tracing::error!("the controller gave no producer ids: {why:?} {}", message.unwrap_or_default());
                return self.id_waiters.drain(..).for_each(|reply| reply.send(Err(Unavailable)));
            }
            _ => return self.id_waiters.drain(..).for_each(|reply| reply.send(Err(Unavailable))),
        }
        while let Some(reply) = self.id_waiters.pop_front() {
            match self.next_id() {
                Some(id) => reply.send(Ok(id)),
                None => {
                    self.id_waiters.push_front(reply);
                    return self.ask_for_ids(ctx);
                }
            }
        }
    }
}

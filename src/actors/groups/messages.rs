//! What one may say to a [`Groups`](super::Groups) actor.

use crate::core::controller::Image;
use crate::core::group::report::{GroupReport, Mark};
use crate::core::group::request::DeletedTopic;
use crate::core::group::{Answer, Request, Settings};
use crate::rt::Reply;
use actix::prelude::*;
use std::sync::Arc;

/// The topic whose partitions hold the groups.
pub const TOPIC: &str = "__consumer_offsets";

/// A request to the coordinator of a group. From: handlers. Lost: answered `Gone`; the client looks for the coordinator again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ask {
    /// What is asked.
    pub request: Request,
    /// The answer, of the same name.
    pub reply: Reply<Answer>,
}

/// What there is to tell of the groups here, a page of it. From: whoever scrapes the metrics. Lost: answered `Gone`; these groups are
/// missing from one scrape.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Report {
    /// Where the page before this one ended.
    pub after: Option<Mark>,
    /// The page, and where to go on; empty while the coordinator does not serve.
    pub reply: Reply<(Vec<GroupReport>, Option<Mark>)>,
}

/// Topics are no more: their offsets go. From: the shard. Lost: with the coordinator; their offsets stay until they expire.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct TopicsDeleted(pub Arc<[DeletedTopic]>);

/// Topics came, went or grew, or settings of groups changed. From: the shard. Lost: with the coordinator; the next one begins with the newest.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct TopicsChanged {
    /// All topics, from now on.
    pub topics: Arc<Image>,
    /// The names of those that changed.
    pub changed: Arc<[Arc<str>]>,
    /// Whether some are new.
    pub some_new: bool,
}

/// Settings changed. From: the shard. Lost: with the coordinator; the next one begins with the newest.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct Reconfigured(pub Settings);

/// This broker leads the partition no longer, or stops: answer all that wait, and end. From: the shard. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Unload;

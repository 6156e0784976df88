//! Finding the partition that a request names, and asking it. One question per partition; all are on their way before the first answer is
//! awaited.

use super::Cx;
use crate::actors::partition::Partition;
use crate::actors::partition::messages::ReadRefused;
use crate::core::controller::Image;
use crate::core::types::TopicPartition;
use crate::rt::{Answer, Gone, Reply, Tell, port};
use crate::wire::error::ErrorCode;
use actix::Addr;

/// A question that is on its way, or the error that stands in its place.
pub enum Asked<T> {
    /// Nobody was asked.
    Refused(ErrorCode),
    /// A partition was asked.
    Waiting(TopicPartition, Answer<Result<T, ReadRefused>>),
}

/// The partition of that name, or UNKNOWN_TOPIC_OR_PARTITION.
pub fn find(image: &Image, topic: &str, partition: i32) -> Result<TopicPartition, ErrorCode> {
    let topic = image.topic_by_name(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    topic.partition(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    Ok(TopicPartition { topic: topic.id, partition })
}

/// Asks the replica on this broker; NOT_LEADER_OR_FOLLOWER if there is none.
pub fn ask<M, T>(cx: &Cx, at: TopicPartition, message: impl FnOnce(Reply<Result<T, ReadRefused>>) -> M) -> Asked<T>
where
    Addr<Partition>: Tell<M>,
{
    let asked = cx.broker.routes.with(at, |route| {
        let (reply, answer) = port();
        route.partition.tell(message(reply));
        answer
    });
    asked.map_or(Asked::Refused(ErrorCode::NotLeaderOrFollower), |answer| Asked::Waiting(at, answer))
}

/// Asks the partition of that name.
pub fn ask_named<M, T>(
    cx: &Cx,
    image: &Image,
    topic: &str,
    partition: i32,
    message: impl FnOnce(Reply<Result<T, ReadRefused>>) -> M,
) -> Asked<T>
where
    Addr<Partition>: Tell<M>,
{
    match find(image, topic, partition) {
        Ok(at) => ask(cx, at, message),
        Err(code) => Asked::Refused(code),
    }
}

impl<T> Asked<T> {
    /// The answer. A partition that went away meanwhile no longer leads, or was deleted.
    pub async fn answer(self, cx: &Cx) -> Result<T, ErrorCode> {
        let (at, answer) = match self {
            Asked::Refused(code) => return Err(code),
            Asked::Waiting(at, answer) => (at, answer),
        };
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(ReadRefused::Gone)) | Err(Gone) => Err(gone(&cx.image(), at)),
            Ok(Err(refused)) => Err(ErrorCode::from(&refused)),
        }
    }
}

/// What to answer for a partition that is not here: it may exist elsewhere, or no more.
pub fn gone(image: &Image, at: TopicPartition) -> ErrorCode {
    match image.partition(at) {
        Some(_) => ErrorCode::NotLeaderOrFollower,
        None => ErrorCode::UnknownTopicOrPartition,
    }
}

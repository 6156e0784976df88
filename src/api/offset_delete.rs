//! OffsetDelete (key 47), v0 (KIP-496).
//!
//! Deletes a group's committed offsets. Partitions that there are not are refused with UNKNOWN_TOPIC_OR_PARTITION.

use super::groups::{delete_offsets, each_row, shared};
use super::terms::topic_name;
use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::Image;
use crate::core::group::Why;
use crate::core::group::request::{DeleteOffsets, Rows};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(47, "OffsetDelete", 0, 0);

/// Deletes offsets.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: OffsetDeleteRequest) -> Outcome<OffsetDeleteResponse> {
    if request.group_id.is_empty() {
        return Outcome::Now(respond(call, Vec::new(), Err(Why::InvalidGroupId)));
    }
    let (known, unknown) = sort(&cx.image(), &request);
    // Also without any partition: the group's own errors come first.
    let answer = delete_offsets(cx, &request.group_id, DeleteOffsets { group: shared(&request.group_id), topics: known });
    let call = call.clone();
    Outcome::later(async move { respond(&call, unknown, answer.await) })
}

/// What there is, for the coordinator; and what there is not.
fn sort(image: &Image, request: &OffsetDeleteRequest) -> (Vec<Rows<()>>, Vec<Rows<()>>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for asked in &request.topics {
        let topic = image.topic_by_name(&asked.name);
        let indexes = asked.partitions.iter().map(|partition| (partition.partition_index, ()));
        let (good, bad): (Vec<_>, Vec<_>) = indexes.partition(|(index, ())| topic.is_some_and(|topic| topic.partition(*index).is_some()));
        let (name, id) = (shared(&asked.name), topic.map(|topic| topic.id).unwrap_or_default());
        if !bad.is_empty() || topic.is_none() {
            unknown.push(Rows { topic: name.clone(), id, partitions: bad });
        }
        if !good.is_empty() {
            known.push(Rows { topic: name, id, partitions: good });
        }
    }
    (known, unknown)
}

/// What was unknown comes first, and the rest of such a topic with it; an error of the group stands alone.
fn respond(call: &Call, unknown: Vec<Rows<()>>, outcome: Result<Vec<Rows<Result<(), Why>>>, Why>) -> OffsetDeleteResponse {
    let rows = match outcome {
        Ok(rows) => rows,
        Err(why) => return OffsetDeleteResponse::default().with_error_code(call.error(why.into())),
    };
    let mut topics: Vec<OffsetDeleteResponseTopic> = Vec::new();
    let unknown = unknown.iter().map(|rows| each_row(rows, |()| ErrorCode::UnknownTopicOrPartition));
    let rows = rows.iter().map(|rows| each_row(rows, |result| result.map_or_else(ErrorCode::from, |()| ErrorCode::None)));
    for rows in unknown.chain(rows) {
        let partitions = rows.partitions.iter().map(|(index, error)| {
            OffsetDeleteResponsePartition::default().with_partition_index(*index).with_error_code(call.error(*error))
        });
        let partitions: Vec<_> = partitions.collect();
        let name = topic_name(&rows.topic);
        match topics.iter_mut().find(|topic| topic.name == name) {
            Some(topic) => topic.partitions.extend(partitions),
            None => topics.push(OffsetDeleteResponseTopic::default().with_name(name).with_partitions(partitions)),
        }
    }
    OffsetDeleteResponse::default().with_topics(topics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};
    use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};

    #[test]
    fn what_there_is_not_is_unknown_unless_the_group_is() {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1], &[1])])]);
        let topic = |name: &str| {
            let partitions = [0, 1].map(|index| OffsetDeleteRequestPartition::default().with_partition_index(index)).to_vec();
            OffsetDeleteRequestTopic::default().with_name(topic_name(name)).with_partitions(partitions)
        };
        let (known, unknown) = sort(&image, &OffsetDeleteRequest::default().with_topics(vec![topic("none"), topic("t")]));
        let rows = || Ok(known.iter().map(|rows| each_row(rows, |()| Err(Why::GroupSubscribedToTopic))).collect());
        encodes(SPEC, |call| respond(call, unknown.clone(), rows()));
        let answer = respond(&call(SPEC, 0), unknown.clone(), rows());
        let errors: Vec<Vec<(i32, i16)>> =
            answer.topics.iter().map(|topic| topic.partitions.iter().map(|p| (p.partition_index, p.error_code)).collect()).collect();
        assert_eq!(errors, [[(0, 3), (1, 3)], [(1, 3), (0, 86)]]);
        let refused = respond(&call(SPEC, 0), unknown, Err(Why::GroupIdNotFound));
        assert_eq!((refused.error_code, refused.topics.len()), (69, 0));
    }
}

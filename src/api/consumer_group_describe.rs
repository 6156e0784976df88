//! ConsumerGroupDescribe (key 69), v0-1.
//!
//! Consumer groups (KIP-848), their members, what each has and shall have. Classic groups are not found.
//! * v1 says which members speak the classic protocol (KIP-1099).

use super::consumer_group_heartbeat::is_on;
use super::groups::{describe_consumers, shared};
use super::terms::{GROUP_OPERATIONS, NOT_ASKED, text, topic_name, uuid};
use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::Image;
use crate::core::group::Why;
use crate::core::group::assign;
use crate::core::group::request::{DescribedConsumer, DescribedConsumerMember, Refused};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::consumer_group_describe_response::{Assignment, DescribedGroup, Member, TopicPartitions};
use kafka_protocol::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, GroupId};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(69, "ConsumerGroupDescribe", 0, 1);

/// Describes groups.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ConsumerGroupDescribeRequest) -> Outcome<ConsumerGroupDescribeResponse> {
    if !is_on(cx) {
        let row = |group: GroupId| {
            let error = call.error(ErrorCode::UnsupportedVersion);
            DescribedGroup::default().with_group_id(group).with_error_code(error).with_authorized_operations(NOT_ASKED)
        };
        return Outcome::Now(ConsumerGroupDescribeResponse::default().with_groups(request.group_ids.into_iter().map(row).collect()));
    }
    let asked: Vec<_> = request.group_ids.iter().map(|group| describe_consumers(cx, group, vec![shared(group)])).collect();
    let (call, image) = (call.clone(), cx.image());
    Outcome::later(async move {
        let mut rows = Vec::with_capacity(asked.len());
        for (group, answer) in request.group_ids.into_iter().zip(asked) {
            let outcome = match answer.await {
                Ok(mut groups) => groups.pop().map_or(Err(Why::GroupIdNotFound.into()), |(_, described)| described),
                Err(why) => Err(why.into()),
            };
            rows.push(row(&call, &image, request.include_authorized_operations, group, outcome));
        }
        ConsumerGroupDescribeResponse::default().with_groups(rows)
    })
}

fn row(call: &Call, image: &Image, operations_asked: bool, group: GroupId, outcome: Result<DescribedConsumer, Refused>) -> DescribedGroup {
    let row = match outcome {
        // Whoever may not know the topics would not be told of the group; here everybody may.
        Ok(described) => DescribedGroup::default()
            .with_error_code(call.error(ErrorCode::None))
            .with_group_state(text(described.state.name()))
            .with_group_epoch(described.epoch)
            .with_assignment_epoch(described.target_epoch)
            .with_assignor_name(text(described.assignor))
            .with_members(described.members.into_iter().map(|member| member_row(call.version, image, member)).collect())
            .with_authorized_operations(if operations_asked { GROUP_OPERATIONS } else { NOT_ASKED }),
        Err(Refused { why, message }) => {
            let message = (why == Why::GroupIdNotFound).then(|| text(&message));
            let row = DescribedGroup::default().with_error_code(call.error(why.into())).with_error_message(message);
            row.with_authorized_operations(NOT_ASKED)
        }
    };
    row.with_group_id(group)
}

fn member_row(version: i16, image: &Image, member: DescribedConsumerMember) -> Member {
    let meta = member.meta;
    let kind = if meta.classic.is_some() { 0 } else { 1 };
    Member::default()
        .with_member_id(text(&member.member))
        .with_instance_id(meta.instance.as_deref().map(text))
        .with_rack_id(meta.rack.as_deref().map(text))
        .with_member_epoch(member.epoch)
        .with_client_id(text(&meta.client_id))
        .with_client_host(text(&meta.client_host))
        .with_subscribed_topic_names(meta.topics.iter().map(|topic| topic_name(topic)).collect())
        .with_subscribed_topic_regex(Some(text(meta.regex.as_deref().unwrap_or_default())))
        .with_assignment(assignment(image, &member.assigned))
        .with_target_assignment(assignment(image, &member.target))
        .with_member_type(if version >= 1 { kind } else { -1 })
}

/// With the names of the topics; those that are no more are left out.
fn assignment(image: &Image, partitions: &assign::Assignment) -> Assignment {
    let topics = partitions.iter().filter_map(|(id, indexes)| {
        let topic = image.topic(*id)?;
        let row = TopicPartitions::default().with_topic_id(uuid(*id)).with_topic_name(topic_name(&topic.name));
        Some(row.with_partitions(indexes.iter().copied().collect()))
    });
    Assignment::default().with_topic_partitions(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};
    use crate::core::group::records::ConsumerMemberMetadata;
    use crate::core::group::request::State;
    use crate::core::types::Id;

    fn described() -> DescribedConsumer {
        let meta = ConsumerMemberMetadata {
            instance: Some("i".into()),
            rack: None,
            client_id: "c".into(),
            client_host: "/h".into(),
            topics: [std::sync::Arc::from("t")].into(),
            regex: None,
            rebalance_timeout: 1,
            server_assignor: None,
            classic: None,
        };
        let assigned = [(Id(100), [0].into()), (Id(7), [1].into())].into();
        let member = DescribedConsumerMember { member: "m".into(), meta, epoch: 3, assigned, target: Default::default() };
        DescribedConsumer { state: State::Reconciling, epoch: 4, target_epoch: 4, assignor: "uniform", members: vec![member] }
    }

    #[test]
    fn rows() {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1], &[1])])]);
        let group = || GroupId(text("g"));
        encodes(SPEC, |call| ConsumerGroupDescribeResponse::default().with_groups(vec![row(call, &image, true, group(), Ok(described()))]));
        let of = |version| row(&call(SPEC, version), &image, true, group(), Ok(described()));
        let (old, new) = (of(0), of(1));
        assert_eq!((new.group_state.as_str(), new.group_epoch, new.assignor_name.as_str()), ("Reconciling", 4, "uniform"));
        assert_eq!((new.authorized_operations, old.members[0].member_type, new.members[0].member_type), (GROUP_OPERATIONS, -1, 1));
        let topics = &new.members[0].assignment.topic_partitions;
        assert_eq!((topics.len(), topics[0].topic_name.as_str(), &topics[0].partitions), (1, "t", &vec![0]));
        let refused = Refused { why: Why::GroupIdNotFound, message: "Group g not found.".into() };
        let row = row(&call(SPEC, 1), &image, true, group(), Err(refused));
        assert_eq!((row.error_code, row.error_message.as_deref(), row.authorized_operations), (69, Some("Group g not found."), NOT_ASKED));
    }
}

//! The bodies of metadata records, type by type, in the order of Kafka's schemas.

mod nodes;
mod partitions;

use crate::core::controller::records::{
    BrokerEpoch, BrokerFence, Config, FeatureLevel, ProducerIds, Record, RemoveTopic, ResourceType, Topic, UnregisterBroker,
};
use crate::core::types::{BrokerId, Id};

use super::BadRecord;
use super::codec::{Reader, Tag, Writer, content};
use nodes::{
    broker_registration_change, register_broker, register_controller, write_broker_registration_change, write_endpoint, write_feature,
    write_register_broker,
};
use partitions::{partition, partition_change, write_partition, write_partition_change};

type Read<T> = Result<T, BadRecord>;

/// Types, names and newest versions, as Kafka 4.3 has them.
const TYPES: &[(u32, &str, i16)] = &[
    (0, "RegisterBrokerRecord", 4),
    (1, "UnregisterBrokerRecord", 0),
    (2, "TopicRecord", 0),
    (3, "PartitionRecord", 2),
    (4, "ConfigRecord", 0),
    (5, "PartitionChangeRecord", 2),
    (7, "FenceBrokerRecord", 0),
    (8, "UnfenceBrokerRecord", 0),
    (9, "RemoveTopicRecord", 0),
    (12, "FeatureLevelRecord", 0),
    (15, "ProducerIdsRecord", 0),
    (17, "BrokerRegistrationChangeRecord", 3),
    (20, "NoOpRecord", 0),
    (23, "BeginTransactionRecord", 0),
    (24, "EndTransactionRecord", 0),
    (25, "AbortTransactionRecord", 0),
    (27, "RegisterControllerRecord", 0),
    (28, "ClearElrRecord", 0),
];

/// Type, name and newest version of a record.
pub(super) fn describe(record: &Record) -> (u32, &'static str, i16) {
    let row = match record {
        Record::RegisterBroker(_) => 0,
        Record::UnregisterBroker(_) => 1,
        Record::Topic(_) => 2,
        Record::Partition(_) => 3,
        Record::Config(_) => 4,
        Record::PartitionChange(_) => 5,
        Record::FenceBroker(_) => 6,
        Record::UnfenceBroker(_) => 7,
        Record::RemoveTopic(_) => 8,
        Record::FeatureLevel(_) => 9,
        Record::ProducerIds(_) => 10,
        Record::BrokerRegistrationChange(_) => 11,
        Record::NoOp => 12,
        Record::BeginTransaction(_) => 13,
        Record::EndTransaction => 14,
        Record::AbortTransaction(_) => 15,
        Record::RegisterController(_) => 16,
        Record::ClearElr(_) => 17,
    };
    TYPES[row]
}

/// Reads the body of a record of that type and version.
pub(super) fn decode(r: &mut Reader, kind: u32, version: u32) -> Read<Record> {
    let (_, name, last) = *TYPES.iter().find(|(known, ..)| *known == kind).ok_or(BadRecord::UnknownType(kind))?;
    if version > last as u32 {
        return Err(BadRecord::UnknownVersion { record: name, version });
    }
    let version = version as i16;
    Ok(match kind {
        0 => return register_broker(r, version).map(Record::RegisterBroker),
        1 => ending(r, |r| Ok(Record::UnregisterBroker(UnregisterBroker { broker_id: r.broker()?, broker_epoch: broker_epoch(r)? })))?,
        2 => ending(r, |r| Ok(Record::Topic(Topic { name: r.text()?, topic_id: r.id()? })))?,
        3 => return partition(r, version).map(Record::Partition),
        4 => ending(r, |r| {
            let resource_type = resource_type(r.i8()?)?;
            Ok(Record::Config(Config { resource_type, resource_name: r.text()?, name: r.text()?, value: r.text_or_null()? }))
        })?,
        5 => return partition_change(r, version).map(Record::PartitionChange),
        7 => Record::FenceBroker(ending(r, broker_fence)?),
        8 => Record::UnfenceBroker(ending(r, broker_fence)?),
        9 => Record::RemoveTopic(ending(r, |r| Ok(RemoveTopic { topic_id: r.id()? }))?),
        12 => Record::FeatureLevel(ending(r, |r| Ok(FeatureLevel { name: r.text()?, level: r.i16()? }))?),
        15 => Record::ProducerIds(ending(r, |r| {
            Ok(ProducerIds { broker_id: r.broker()?, broker_epoch: broker_epoch(r)?, next_producer_id: r.i64()? })
        })?),
        17 => return broker_registration_change(r, version).map(Record::BrokerRegistrationChange),
        20 => ending(r, |_| Ok(Record::NoOp))?,
        23 => Record::BeginTransaction(tagged_text(r)?),
        24 => ending(r, |_| Ok(Record::EndTransaction))?,
        25 => Record::AbortTransaction(tagged_text(r)?),
        27 => Record::RegisterController(ending(r, register_controller)?),
        28 => Record::ClearElr(ending(r, Reader::text)?),
        _ => return Err(BadRecord::UnknownType(kind)),
    })
}

/// Writes the body of a record in a version that exists.
pub(super) fn encode(w: &mut Writer, record: &Record, version: i16) -> Result<(), BadRecord> {
    match record {
        Record::RegisterBroker(record) => write_register_broker(w, record, version)?,
        Record::Partition(record) => write_partition(w, record, version)?,
        Record::PartitionChange(record) => write_partition_change(w, record, version)?,
        Record::BrokerRegistrationChange(record) => write_broker_registration_change(w, record, version)?,
        Record::BeginTransaction(text) | Record::AbortTransaction(text) => {
            w.tags(&[(0, text.as_ref().map(|text| content(|w| w.text(text))))]);
        }
        Record::UnregisterBroker(UnregisterBroker { broker_id, broker_epoch })
        | Record::FenceBroker(BrokerFence { broker_id, broker_epoch })
        | Record::UnfenceBroker(BrokerFence { broker_id, broker_epoch }) => {
            w.i32(broker_id.0);
            w.i64(broker_epoch.0);
            w.no_tags();
        }
        Record::Topic(Topic { name, topic_id }) => {
            w.text(name);
            w.id(*topic_id);
            w.no_tags();
        }
        Record::Config(Config { resource_type, resource_name, name, value }) => {
            w.i8(resource_code(*resource_type));
            w.text(resource_name);
            w.text(name);
            w.text_or_null(value.as_deref());
            w.no_tags();
        }
        Record::RemoveTopic(RemoveTopic { topic_id }) => {
            w.id(*topic_id);
            w.no_tags();
        }
        Record::FeatureLevel(FeatureLevel { name, level }) => {
            w.text(name);
            w.i16(*level);
            w.no_tags();
        }
        Record::ProducerIds(ProducerIds { broker_id, broker_epoch, next_producer_id }) => {
            w.i32(broker_id.0);
            w.i64(broker_epoch.0);
            w.i64(*next_producer_id);
            w.no_tags();
        }
        Record::NoOp | Record::EndTransaction => w.no_tags(),
        Record::RegisterController(record) => {
            w.i32(record.controller_id.0);
            w.id(record.incarnation_id);
            w.bool(record.zk_migration_ready);
            w.list(&record.endpoints, write_endpoint);
            w.list(&record.features, write_feature);
            w.no_tags();
        }
        Record::ClearElr(topic) => {
            w.text(topic);
            w.no_tags();
        }
    }
    w.done()
}

/// A body without tagged fields of its own.
fn ending<'a, T>(r: &mut Reader<'a>, fields: impl FnOnce(&mut Reader<'a>) -> Read<T>) -> Read<T> {
    let value = fields(r)?;
    r.no_tags()?;
    Ok(value)
}

fn broker_epoch(r: &mut Reader) -> Read<BrokerEpoch> {
    r.i64().map(BrokerEpoch)
}

fn brokers(r: &mut Reader) -> Read<Vec<BrokerId>> {
    r.list(Reader::broker)
}

fn ids(r: &mut Reader) -> Read<Vec<Id>> {
    r.list(Reader::id)
}

fn broker_fence(r: &mut Reader) -> Read<BrokerFence> {
    Ok(BrokerFence { broker_id: r.broker()?, broker_epoch: broker_epoch(r)? })
}

/// A body of one optional text, tagged 0.
fn tagged_text(r: &mut Reader) -> Read<Option<String>> {
    let mut text = None;
    r.tags(|number, r| match number {
        0 => read(r.text_or_null().map(|value| text = value)),
        _ => Ok(Tag::Unknown),
    })?;
    Ok(text)
}

fn read(outcome: Read<()>) -> Read<Tag> {
    outcome.map(|()| Tag::Read)
}

fn resource_type(code: i8) -> Read<ResourceType> {
    match code {
        2 => Ok(ResourceType::Topic),
        4 => Ok(ResourceType::Broker),
        8 => Ok(ResourceType::BrokerLogger),
        16 => Ok(ResourceType::ClientMetrics),
        32 => Ok(ResourceType::Group),
        _ => Err(BadRecord::Value { field: "resource type", value: code.into() }),
    }
}

fn resource_code(kind: ResourceType) -> i8 {
    match kind {
        ResourceType::Topic => 2,
        ResourceType::Broker => 4,
        ResourceType::BrokerLogger => 8,
        ResourceType::ClientMetrics => 16,
        ResourceType::Group => 32,
    }
}

/// An error if a field is set that only a later version has.
fn needs(first: i16, version: i16, set: bool, field: &'static str) -> Result<(), BadRecord> {
    if set && version < first { Err(BadRecord::FieldNeedsNewer { field, version }) } else { Ok(()) }
}

fn some_ids(list: &[Id]) -> Option<Vec<u8>> {
    (!list.is_empty()).then(|| content(|w| w.ids(list)))
}

fn optional_ids(list: &Option<Vec<Id>>) -> Option<Vec<u8>> {
    list.as_ref().map(|list| content(|w| w.ids(list)))
}

fn optional_brokers(list: &Option<Vec<BrokerId>>) -> Option<Vec<u8>> {
    list.as_ref().map(|list| content(|w| w.brokers(list)))
}

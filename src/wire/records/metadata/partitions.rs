//! The bodies of the records about partitions.

use crate::core::controller::records::{LeaderRecovery, Partition, PartitionChange};
use crate::core::types::BrokerId;

use super::super::BadRecord;
use super::super::codec::{Reader, Tag, Writer, content};
use super::{Read, brokers, ids, needs, optional_brokers, optional_ids, read};

fn leader_recovery(code: i8) -> Read<LeaderRecovery> {
    match code {
        0 => Ok(LeaderRecovery::Recovered),
        1 => Ok(LeaderRecovery::Recovering),
        _ => Err(BadRecord::Value { field: "leader recovery state", value: code.into() }),
    }
}

fn recovery_code(state: LeaderRecovery) -> i8 {
    i8::from(state == LeaderRecovery::Recovering)
}

pub(super) fn partition(r: &mut Reader, version: i16) -> Read<Partition> {
    let mut record = Partition {
        partition_id: r.i32()?,
        topic_id: r.id()?,
        replicas: brokers(r)?,
        isr: brokers(r)?,
        removing_replicas: brokers(r)?,
        adding_replicas: brokers(r)?,
        leader: r.broker()?,
        leader_recovery: LeaderRecovery::Recovered,
        leader_epoch: r.epoch()?,
        partition_epoch: r.epoch()?,
        directories: if version >= 1 { ids(r)? } else { Vec::new() },
        elr: None,
        last_known_elr: None,
    };
    r.tags(|number, r| match number {
        0 => read(r.i8().and_then(leader_recovery).map(|state| record.leader_recovery = state)),
        1 if version >= 2 => read(r.list_or_null(Reader::broker).map(|list| record.elr = list)),
        2 if version >= 2 => read(r.list_or_null(Reader::broker).map(|list| record.last_known_elr = list)),
        _ => Ok(Tag::Unknown),
    })?;
    Ok(record)
}

pub(super) fn write_partition(w: &mut Writer, record: &Partition, version: i16) -> Result<(), BadRecord> {
    needs(1, version, !record.directories.is_empty(), "directories")?;
    needs(2, version, record.elr.is_some(), "elr")?;
    needs(2, version, record.last_known_elr.is_some(), "last_known_elr")?;
    w.i32(record.partition_id);
    w.id(record.topic_id);
    w.brokers(&record.replicas);
    w.brokers(&record.isr);
    w.brokers(&record.removing_replicas);
    w.brokers(&record.adding_replicas);
    w.i32(record.leader.0);
    w.i32(record.leader_epoch.0);
    w.i32(record.partition_epoch.0);
    if version >= 1 {
        w.ids(&record.directories);
    }
    let recovering = record.leader_recovery != LeaderRecovery::Recovered;
    w.tags(&[
        (0, recovering.then(|| content(|w| w.i8(recovery_code(record.leader_recovery))))),
        (1, optional_brokers(&record.elr)),
        (2, optional_brokers(&record.last_known_elr)),
    ]);
    Ok(())
}

pub(super) fn partition_change(r: &mut Reader, version: i16) -> Read<PartitionChange> {
    let partition_id = r.i32()?;
    let mut record = PartitionChange::new(r.id()?, partition_id);
    r.tags(|number, r| match number {
        0 => read(r.list_or_null(Reader::broker).map(|list| record.isr = list)),
        1 => read(r.broker().map(|leader| record.leader = (leader != UNCHANGED).then_some(leader))),
        2 => read(r.list_or_null(Reader::broker).map(|list| record.replicas = list)),
        3 => read(r.list_or_null(Reader::broker).map(|list| record.removing_replicas = list)),
        4 => read(r.list_or_null(Reader::broker).map(|list| record.adding_replicas = list)),
        5 => match r.i8()? {
            -1 => Ok(Tag::Read),
            code => read(leader_recovery(code).map(|state| record.leader_recovery = Some(state))),
        },
        6 if version >= 2 => read(r.list_or_null(Reader::broker).map(|list| record.elr = list)),
        7 if version >= 2 => read(r.list_or_null(Reader::broker).map(|list| record.last_known_elr = list)),
        8 if version >= 1 => read(r.list_or_null(Reader::id).map(|list| record.directories = list)),
        _ => Ok(Tag::Unknown),
    })?;
    Ok(record)
}

/// The leader in a change that is not one of the leader.
const UNCHANGED: BrokerId = BrokerId(-2);

pub(super) fn write_partition_change(w: &mut Writer, record: &PartitionChange, version: i16) -> Result<(), BadRecord> {
    needs(1, version, record.directories.is_some(), "directories")?;
    needs(2, version, record.elr.is_some(), "elr")?;
    needs(2, version, record.last_known_elr.is_some(), "last_known_elr")?;
    w.i32(record.partition_id);
    w.id(record.topic_id);
    w.tags(&[
        (0, optional_brokers(&record.isr)),
        (1, record.leader.map(|leader| content(|w| w.i32(leader.0)))),
        (2, optional_brokers(&record.replicas)),
        (3, optional_brokers(&record.removing_replicas)),
        (4, optional_brokers(&record.adding_replicas)),
        (5, record.leader_recovery.map(|state| content(|w| w.i8(recovery_code(state))))),
        (6, optional_brokers(&record.elr)),
        (7, optional_brokers(&record.last_known_elr)),
        (8, optional_ids(&record.directories)),
    ]);
    Ok(())
}

//! The bytes of the quorum's control records: they are alone in batches whose control bit is set, with a key that tells their type.
//!
//! The ends of transactions (types 0 and 1) are control records too, but of other logs: not here.

use crate::core::quorum::records::{ControlRecord, LeaderChange, Voter, VoterEndpoint};
use crate::core::types::{BrokerId, Millis};

use super::BadRecord;
use super::codec::{Reader, Writer};

type Read<T> = Result<T, BadRecord>;

/// The version of keys and values; Kafka has no other.
const VERSION: i16 = 0;

/// The record with that key and value.
pub fn decode(key: &[u8], value: &[u8]) -> Result<ControlRecord, BadRecord> {
    let mut key = Reader::new(key);
    current(key.i16()?, "control record key")?;
    let kind = key.i16()?;
    let mut reader = Reader::new(value);
    let r = &mut reader;
    let record = match kind {
        2 => {
            current(r.i16()?, "LeaderChangeMessage")?;
            ControlRecord::LeaderChange(LeaderChange { leader: r.broker()?, voters: r.list(voter_id)?, granting: r.list(voter_id)? })
        }
        3 => {
            current(r.i16()?, "SnapshotHeaderRecord")?;
            ControlRecord::SnapshotHeader(Millis(r.i64()?))
        }
        4 => {
            current(r.i16()?, "SnapshotFooterRecord")?;
            ControlRecord::SnapshotFooter
        }
        5 => {
            current(r.i16()?, "KRaftVersionRecord")?;
            ControlRecord::KRaftVersion(r.i16()?)
        }
        6 => {
            current(r.i16()?, "VotersRecord")?;
            ControlRecord::Voters(r.list(voter)?)
        }
        other => return Err(BadRecord::Value { field: "control record type", value: other.into() }),
    };
    r.no_tags()?;
    r.end()?;
    Ok(record)
}

/// Key and value of that record.
pub fn encode(record: &ControlRecord) -> Result<([u8; 4], Vec<u8>), BadRecord> {
    let mut value = Vec::new();
    let mut w = Writer::new(&mut value);
    w.i16(VERSION);
    let kind: u8 = match record {
        ControlRecord::LeaderChange(change) => {
            w.i32(change.leader.0);
            for voters in [&change.voters, &change.granting] {
                w.list(voters, |w, id| {
                    w.i32(id.0);
                    w.no_tags();
                });
            }
            2
        }
        ControlRecord::SnapshotHeader(timestamp) => {
            w.i64(timestamp.0);
            3
        }
        ControlRecord::SnapshotFooter => 4,
        ControlRecord::KRaftVersion(version) => {
            w.i16(*version);
            5
        }
        ControlRecord::Voters(voters) => {
            w.list(voters, write_voter);
            6
        }
    };
    w.no_tags();
    w.done()?;
    Ok(([0, VERSION as u8, 0, kind], value))
}

fn current(version: i16, record: &'static str) -> Read<()> {
    if version == VERSION { Ok(()) } else { Err(BadRecord::UnknownVersion { record, version: version as u16 as u32 }) }
}

fn voter_id(r: &mut Reader) -> Read<BrokerId> {
    let id = r.broker()?;
    r.no_tags()?;
    Ok(id)
}

fn voter(r: &mut Reader) -> Read<Voter> {
    let (id, directory, endpoints) = (r.broker()?, r.id()?, r.list(endpoint)?);
    let (min_version, max_version) = (r.i16()?, r.i16()?);
    r.no_tags()?; // of the range of versions
    r.no_tags()?; // of the voter
    Ok(Voter { id, directory, endpoints, min_version, max_version })
}

fn endpoint(r: &mut Reader) -> Read<VoterEndpoint> {
    let endpoint = VoterEndpoint { name: r.text()?, host: r.text()?, port: r.u16()? };
    r.no_tags()?;
    Ok(endpoint)
}

fn write_voter(w: &mut Writer, voter: &Voter) {
    w.i32(voter.id.0);
    w.id(voter.directory);
    w.list(&voter.endpoints, |w, endpoint| {
        w.text(&endpoint.name);
        w.text(&endpoint.host);
        w.u16(endpoint.port);
        w.no_tags();
    });
    w.i16(voter.min_version);
    w.i16(voter.max_version);
    w.no_tags();
    w.no_tags();
}

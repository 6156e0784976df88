//! The bodies of the records about brokers and controllers.

use crate::core::controller::records::{BrokerRegistrationChange, Endpoint, Feature, RegisterBroker, RegisterController, SecurityProtocol};

use super::super::BadRecord;
use super::super::codec::{Reader, Tag, Writer, content};
use super::{Read, broker_epoch, ending, ids, needs, optional_ids, read, some_ids};

pub(super) fn endpoint(r: &mut Reader) -> Read<Endpoint> {
    ending(r, |r| {
        let (name, host, port, code) = (r.text()?, r.text()?, r.u16()?, r.i16()?);
        let security_protocol = match code {
            0 => SecurityProtocol::Plaintext,
            1 => SecurityProtocol::Ssl,
            2 => SecurityProtocol::SaslPlaintext,
            3 => SecurityProtocol::SaslSsl,
            _ => return Err(BadRecord::Value { field: "security protocol", value: code.into() }),
        };
        Ok(Endpoint { name, host, port, security_protocol })
    })
}

pub(super) fn write_endpoint(w: &mut Writer, endpoint: &Endpoint) {
    w.text(&endpoint.name);
    w.text(&endpoint.host);
    w.u16(endpoint.port);
    w.i16(match endpoint.security_protocol {
        SecurityProtocol::Plaintext => 0,
        SecurityProtocol::Ssl => 1,
        SecurityProtocol::SaslPlaintext => 2,
        SecurityProtocol::SaslSsl => 3,
    });
    w.no_tags();
}

pub(super) fn feature(r: &mut Reader) -> Read<Feature> {
    ending(r, |r| Ok(Feature { name: r.text()?, min: r.i16()?, max: r.i16()? }))
}

pub(super) fn write_feature(w: &mut Writer, feature: &Feature) {
    w.text(&feature.name);
    w.i16(feature.min);
    w.i16(feature.max);
    w.no_tags();
}

pub(super) fn register_controller(r: &mut Reader) -> Read<RegisterController> {
    Ok(RegisterController {
        controller_id: r.broker()?,
        incarnation_id: r.id()?,
        zk_migration_ready: r.bool()?,
        endpoints: r.list(endpoint)?,
        features: r.list(feature)?,
    })
}

pub(super) fn register_broker(r: &mut Reader, version: i16) -> Read<RegisterBroker> {
    let mut record = RegisterBroker {
        broker_id: r.broker()?,
        is_migrating_zk_broker: if version >= 2 { r.bool()? } else { false },
        incarnation_id: r.id()?,
        broker_epoch: broker_epoch(r)?,
        endpoints: r.list(endpoint)?,
        features: r.list(feature)?,
        rack: r.text_or_null()?,
        fenced: r.bool()?,
        in_controlled_shutdown: if version >= 1 { r.bool()? } else { false },
        log_dirs: Vec::new(),
        cordoned_log_dirs: None,
    };
    r.tags(|number, r| match number {
        0 if version >= 3 => read(ids(r).map(|dirs| record.log_dirs = dirs)),
        1 if version >= 4 => read(r.list_or_null(Reader::id).map(|dirs| record.cordoned_log_dirs = dirs)),
        _ => Ok(Tag::Unknown),
    })?;
    Ok(record)
}

pub(super) fn write_register_broker(w: &mut Writer, record: &RegisterBroker, version: i16) -> Result<(), BadRecord> {
    needs(2, version, record.is_migrating_zk_broker, "is_migrating_zk_broker")?;
    needs(1, version, record.in_controlled_shutdown, "in_controlled_shutdown")?;
    needs(3, version, !record.log_dirs.is_empty(), "log_dirs")?;
    needs(4, version, record.cordoned_log_dirs.is_some(), "cordoned_log_dirs")?;
    w.i32(record.broker_id.0);
    if version >= 2 {
        w.bool(record.is_migrating_zk_broker);
    }
    w.id(record.incarnation_id);
    w.i64(record.broker_epoch.0);
    w.list(&record.endpoints, write_endpoint);
    w.list(&record.features, write_feature);
    w.text_or_null(record.rack.as_deref());
    w.bool(record.fenced);
    if version >= 1 {
        w.bool(record.in_controlled_shutdown);
    }
    w.tags(&[(0, some_ids(&record.log_dirs)), (1, optional_ids(&record.cordoned_log_dirs))]);
    Ok(())
}

pub(super) fn broker_registration_change(r: &mut Reader, version: i16) -> Read<BrokerRegistrationChange> {
    let broker_id = r.broker()?;
    let mut record = BrokerRegistrationChange::new(broker_id, broker_epoch(r)?);
    r.tags(|number, r| match number {
        0 => {
            record.fenced = match r.i8()? {
                0 => None,
                1 => Some(true),
                -1 => Some(false),
                code => return Err(BadRecord::Value { field: "fenced", value: code.into() }),
            };
            Ok(Tag::Read)
        }
        1 if version >= 1 => {
            record.in_controlled_shutdown = match r.i8()? {
                0 => false,
                1 => true,
                code => return Err(BadRecord::Value { field: "in controlled shutdown", value: code.into() }),
            };
            Ok(Tag::Read)
        }
        2 if version >= 2 => read(ids(r).map(|dirs| record.log_dirs = dirs)),
        3 if version >= 3 => read(r.list_or_null(Reader::id).map(|dirs| record.cordoned_log_dirs = dirs)),
        _ => Ok(Tag::Unknown),
    })?;
    Ok(record)
}

pub(super) fn write_broker_registration_change(w: &mut Writer, record: &BrokerRegistrationChange, version: i16) -> Result<(), BadRecord> {
    needs(1, version, record.in_controlled_shutdown, "in_controlled_shutdown")?;
    needs(2, version, !record.log_dirs.is_empty(), "log_dirs")?;
    needs(3, version, record.cordoned_log_dirs.is_some(), "cordoned_log_dirs")?;
    w.i32(record.broker_id.0);
    w.i64(record.broker_epoch.0);
    w.tags(&[
        (0, record.fenced.map(|fenced| content(|w| w.i8(if fenced { 1 } else { -1 })))),
        (1, record.in_controlled_shutdown.then(|| content(|w| w.i8(1)))),
        (2, some_ids(&record.log_dirs)),
        (3, optional_ids(&record.cordoned_log_dirs)),
    ]);
    Ok(())
}

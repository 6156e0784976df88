//! What tests of handlers share: images without a log, and calls without a connection.

use super::{Call, Spec};
use crate::core::controller::records::{self, BrokerEpoch, Endpoint, LeaderRecovery, Record, SecurityProtocol};
use crate::core::controller::{Broker, Image, Partition};
use crate::core::types::{BrokerId, Epoch, Id, Offset};
use crate::rt::clock;
use bytes::BytesMut;
use kafka_protocol::protocol::Encodable;
use understudy_metrics::{Families, Registry};

/// An active broker with one listener, PLAINTEXT.
pub fn broker(id: i32) -> Broker {
    Broker {
        id: BrokerId(id),
        broker_epoch: BrokerEpoch(0),
        incarnation_id: Id(id as u128),
        endpoints: vec![Endpoint {
            name: "PLAINTEXT".into(),
            host: format!("host{id}"),
            port: 9092,
            security_protocol: SecurityProtocol::Plaintext,
        }],
        features: Vec::new(),
        rack: None,
        fenced: false,
        in_controlled_shutdown: false,
        log_dirs: Vec::new(),
        cordoned_log_dirs: None,
    }
}

/// A partition.
pub fn partition(leader: i32, replicas: &[i32], isr: &[i32]) -> Partition {
    let ids = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect::<Vec<_>>();
    Partition {
        replicas: ids(replicas),
        directories: vec![Id::ONE; replicas.len()],
        isr: ids(isr),
        removing_replicas: Vec::new(),
        adding_replicas: Vec::new(),
        elr: Vec::new(),
        last_known_elr: Vec::new(),
        leader: BrokerId(leader),
        leader_epoch: Epoch(5),
        partition_epoch: Epoch(0),
        leader_recovery: LeaderRecovery::Recovered,
    }
}

/// An image of these brokers and topics; the id of the n-th topic is 100 + n.
pub fn image_of<'a>(brokers: impl IntoIterator<Item = Broker>, topics: impl IntoIterator<Item = (&'a str, Vec<Partition>)>) -> Image {
    let mut log = Vec::new();
    for broker in brokers {
        log.push(Record::RegisterBroker(records::RegisterBroker {
            broker_id: broker.id,
            is_migrating_zk_broker: false,
            incarnation_id: broker.incarnation_id,
            broker_epoch: broker.broker_epoch,
            endpoints: broker.endpoints,
            features: broker.features,
            rack: broker.rack.map(|rack| rack.to_string()),
            fenced: broker.fenced,
            in_controlled_shutdown: broker.in_controlled_shutdown,
            log_dirs: broker.log_dirs,
            cordoned_log_dirs: broker.cordoned_log_dirs,
        }));
    }
    for (topic, (name, partitions)) in topics.into_iter().enumerate() {
        let topic_id = Id(100 + topic as u128);
        log.push(Record::Topic(records::Topic { name: name.into(), topic_id }));
        for (index, partition) in partitions.into_iter().enumerate() {
            log.push(Record::Partition(records::Partition {
                partition_id: index as i32,
                topic_id,
                replicas: partition.replicas,
                isr: partition.isr,
                removing_replicas: partition.removing_replicas,
                adding_replicas: partition.adding_replicas,
                leader: partition.leader,
                leader_recovery: partition.leader_recovery,
                leader_epoch: partition.leader_epoch,
                partition_epoch: partition.partition_epoch,
                directories: partition.directories,
                elr: Some(partition.elr),
                last_known_elr: Some(partition.last_known_elr),
            }));
        }
    }
    let mut image = Image::empty("cluster");
    for (offset, record) in log.iter().enumerate() {
        image.apply(Offset(offset as i64), record).expect("the test's records fit together");
    }
    image
}

/// A request of that API and version.
pub fn call(spec: Spec, version: i16) -> Call {
    let families = Families::new(&Registry::new());
    Call::new(spec.key, version, 0, "test".into(), clock::moment(), families.api(spec.name, spec.min..=spec.max, &[]))
}

/// Writes an answer in every version of the API: no version may refuse a field that is set.
pub fn encodes<R: Encodable>(spec: Spec, answer: impl Fn(&Call) -> R) {
    for version in spec.min..=spec.max {
        let call = call(spec, version);
        let mut bytes = BytesMut::new();
        answer(&call).encode(&mut bytes, version).unwrap_or_else(|e| panic!("{} v{version}: {e}", spec.name));
    }
}

//! Decisions in tables, each with the records it writes; and the property that nothing is state but what records say.

use proptest::prelude::*;

use super::records::{BrokerEpoch, Endpoint, Feature, ResourceType, SecurityProtocol};
use super::request::*;
use super::*;
use crate::core::chance::Seeded;
use crate::core::types::{BrokerId, Id, Offset};

mod beside;
mod brokers;
mod configs;
mod elections;
mod isr;
mod lifecycle;
mod model;
mod topics;

struct Rules;

impl ConfigRules for Rules {
    fn check(&self, _: &Image, _: &ConfigResource, new: &Configs) -> Result<(), Refusal> {
        match new.keys().find(|name| name.starts_with("bad")) {
            Some(name) => Err(Refusal::new(Why::InvalidConfig, format!("Unknown topic config name: {name}"))),
            None => Ok(()),
        }
    }

    fn list_default(&self, _: ResourceType, name: &str) -> Option<String> {
        (name == "cleanup.policy").then(|| "delete".into())
    }
}

fn features() -> Vec<Feature> {
    vec![
        Feature { name: "metadata.version".into(), min: 7, max: 30 },
        Feature { name: "group.version".into(), min: 0, max: 1 },
        Feature { name: ELR_VERSION.into(), min: 0, max: 1 },
        Feature { name: "kraft.version".into(), min: 0, max: 0 },
    ]
}

/// A controller with its log, as a quorum of one would keep it.
struct World {
    controller: Controller,
    log: Vec<Record>,
    chance: Seeded,
    claims: Claims,
}

impl World {
    fn empty() -> World {
        let settings = Settings {
            default_partitions: 1,
            default_replication_factor: 1,
            unclean_election: false,
            min_insync_replicas: 1,
            features: features(),
            rules: Arc::new(Rules),
        };
        let mut world =
            World { controller: Controller::new(Image::empty("c"), settings), log: vec![], chance: Seeded(7), claims: Claims::default() };
        world.append(bootstrap(30, &[], 1));
        world
    }

    fn with_brokers(ids: &[i32]) -> World {
        let mut world = World::empty();
        for id in ids {
            let epoch = world.register(*id, *id as u128).unwrap();
            world.unfence(*id, epoch);
        }
        world
    }

    fn append(&mut self, records: Vec<Record>) {
        for record in records {
            self.controller.apply(Offset(self.log.len() as i64), &record).unwrap();
            self.log.push(record);
        }
    }

    fn decide(&mut self, request: Request) -> Decision {
        let mut cx = Context { next: Offset(self.log.len() as i64), chance: &mut self.chance, claims: &self.claims };
        self.controller.decide(request, &mut cx)
    }

    fn ask(&mut self, request: Request) -> Answer {
        let Decision { records, answer, .. } = self.decide(request);
        self.append(records);
        answer
    }

    fn registration(&self, id: i32, incarnation: u128) -> Registration {
        Registration {
            cluster_id: "c".into(),
            broker: BrokerId(id),
            incarnation_id: Id(incarnation),
            endpoints: vec![Endpoint {
                name: "PLAINTEXT".into(),
                host: "h".into(),
                port: 9092,
                security_protocol: SecurityProtocol::Plaintext,
            }],
            features: features(),
            rack: None,
            log_dirs: vec![Id(1000 + id as u128)],
            previous_epoch: None,
            session_alive: false,
        }
    }

    fn register(&mut self, id: i32, incarnation: u128) -> Result<BrokerEpoch, Refusal> {
        let request = self.registration(id, incarnation);
        match self.ask(Request::RegisterBroker(request)) {
            Answer::RegisterBroker(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn heartbeat(&mut self, id: i32, broker_epoch: BrokerEpoch, seen: i64, want_fence: bool) -> Result<BrokerState, Refusal> {
        let heartbeat = Heartbeat { want_fence, ..Heartbeat::new(BrokerId(id), broker_epoch, Offset(seen)) };
        match self.ask(Request::Heartbeat(heartbeat)) {
            Answer::Heartbeat(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn unfence(&mut self, id: i32, epoch: BrokerEpoch) {
        assert_eq!(self.heartbeat(id, epoch, self.log.len() as i64, false), Ok(state(true, false)));
    }

    fn create(&mut self, topics: Vec<NewTopic>) -> Vec<(String, Result<CreatedTopic, Refusal>)> {
        match self.ask(Request::CreateTopics { topics, validate_only: false }) {
            Answer::CreateTopics(results) => results,
            other => panic!("{other:?}"),
        }
    }

    fn partition(&self, name: &str, index: i32) -> &Partition {
        self.controller.image().topic_by_name(name).and_then(|topic| topic.partition(index)).unwrap()
    }
}

fn state(caught_up: bool, fenced: bool) -> BrokerState {
    BrokerState { caught_up, fenced, shutting_down: false, may_stop: false }
}

fn topic(name: &str, partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic { name: name.into(), partitions, replication_factor, assignments: vec![], configs: vec![] }
}

fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
    let assignments = assignments.iter().map(|(index, ids)| (*index, ids.iter().copied().map(BrokerId).collect())).collect();
    NewTopic { assignments, ..topic(name, -1, -1) }
}

fn configured(name: &str, key: &str, value: Option<&str>) -> NewTopic {
    NewTopic { configs: vec![(key.into(), value.map(str::to_string))], ..topic(name, 1, 1) }
}

fn refused<T: std::fmt::Debug>(result: &Result<T, Refusal>) -> (Why, String) {
    let refusal = result.as_ref().unwrap_err();
    (refusal.why, refusal.message.clone().unwrap_or_default())
}

fn any_request() -> impl Strategy<Value = Request> {
    let name = || "[a-c][._]?[a-c]?";
    let broker = || (1..4).prop_map(BrokerId);
    prop_oneof![
        3 => (name(), -1..4, -1i16..4, any::<bool>()).prop_map(|(name, partitions, replicas, validate_only)| {
            Request::CreateTopics { topics: vec![topic(&name, partitions, replicas)], validate_only }
        }),
        1 => name().prop_map(|name| Request::DeleteTopics(vec![TopicRef { name: Some(name), id: Id::ZERO }])),
        1 => (name(), 0..6, any::<bool>()).prop_map(|(name, count, validate_only)| {
            Request::CreatePartitions { topics: vec![MorePartitions { name, count, assignments: None }], validate_only }
        }),
        1 => (name(), "[kl]", any::<bool>()).prop_map(|(name, key, set)| {
            let (op, value) = if set { (ConfigOp::Set, Some("1".into())) } else { (ConfigOp::Delete, None) };
            let resource = ConfigResource::topic(&name);
            Request::AlterConfigs { resources: vec![AlterConfigs { resource, changes: vec![(key, op, value)] }], validate_only: false }
        }),
        2 => (broker(), 1u128..3).prop_map(|(id, incarnation)| Request::RegisterBroker(World::empty().registration(id.0, incarnation))),
        3 => (broker(), 0i64..60, any::<bool>()).prop_map(|(broker, epoch, want_fence)| {
            Request::Heartbeat(Heartbeat { want_fence, ..Heartbeat::new(broker, BrokerEpoch(epoch), Offset(60)) })
        }),
        1 => broker().prop_map(Request::UnregisterBroker),
        1 => (broker(), 0i64..60).prop_map(|(broker, epoch)| {
            Request::AllocateProducerIds { broker, broker_epoch: BrokerEpoch(epoch) }
        }),
        1 => proptest::collection::vec((broker(), 0i64..60), 1..3).prop_map(|all| {
            Request::Fence(all.into_iter().map(|(id, epoch)| (id, BrokerEpoch(epoch))).collect())
        }),
        1 => Just(Request::Balance),
        1 => (name(), proptest::option::of(proptest::sample::subsequence(vec![1, 2, 3], 1..=3)), any::<bool>()).prop_map(
            |(name, target, allow_factor_change)| {
                let target = target.map(|ids| ids.into_iter().map(BrokerId).collect());
                Request::AlterReassignments { topics: vec![(name, vec![(0, target)])], allow_factor_change }
            }
        ),
        1 => (name(), "[12]").prop_map(|(name, value)| {
            let changes = vec![("min.insync.replicas".into(), ConfigOp::Set, Some(value))];
            Request::AlterConfigs { resources: vec![AlterConfigs { resource: ConfigResource::topic(&name), changes }], validate_only: false }
        }),
        1 => any::<bool>().prop_map(|preferred| {
            let election = if preferred { ElectionType::Preferred } else { ElectionType::Unclean };
            Request::ElectLeaders { election, partitions: None }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replaying_the_log_gives_the_live_controller(requests in proptest::collection::vec(any_request(), 1..60), elr: bool) {
        let mut world = World::empty();
        if elr {
            world.append(vec![Record::FeatureLevel(records::FeatureLevel { name: ELR_VERSION.into(), level: 1 })]);
        }
        for mut request in requests {
            if let Request::Fence(brokers) = &mut request {
                for (id, epoch) in brokers {
                    *epoch = world.controller.image().broker(*id).map_or(*epoch, |broker| broker.broker_epoch);
                }
            }
            // The strategy only guesses epochs: help it, or nobody is ever unfenced.
            if let Request::Heartbeat(heartbeat) = &mut request
                && let Some(broker) = world.controller.image().broker(heartbeat.broker)
            {
                heartbeat.broker_epoch = broker.broker_epoch;
                heartbeat.metadata_offset = Offset(world.log.len() as i64);
            }
            let before = world.controller.image().clone();
            let decision = world.decide(request);
            prop_assert_eq!(world.controller.image(), &before, "to decide changes nothing");
            world.append(decision.records);
            for partition in world.controller.image().topics().flat_map(|topic| topic.partitions.values()) {
                prop_assert!(elr || !partition.isr.is_empty());
                let waited_for = partition.isr.iter().chain(&partition.elr).chain(&partition.last_known_elr);
                prop_assert!(waited_for.clone().next().is_some(), "somebody has what was committed: {partition:?}");
                prop_assert!(waited_for.clone().all(|id| partition.replicas.contains(id)), "{partition:?}");
                if partition.has_leader() {
                    prop_assert!(partition.isr.contains(&partition.leader), "the leader is in sync");
                    prop_assert!(world.controller.image().is_active(partition.leader), "and alive");
                }
            }
        }
        let mut replayed = World::empty();
        replayed.log.clear();
        replayed.controller.image = Image::empty("c");
        replayed.controller.index = Index::default();
        replayed.append(world.log.clone());
        prop_assert_eq!(replayed.controller.image(), world.controller.image());
        prop_assert_eq!(&replayed.controller.lookalikes, &world.controller.lookalikes);
        let reloaded = Controller::new(world.controller.image().clone(), replayed.controller.settings);
        prop_assert_eq!(&reloaded.lookalikes, &world.controller.lookalikes);
        prop_assert_eq!(&replayed.controller.index, &world.controller.index);
        prop_assert_eq!(&reloaded.index, &world.controller.index);
    }
}

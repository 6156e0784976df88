//! The controller's speed lines: 10,000 partitions lose their leader, and one partition changes in an image of 100,000.
//!
//!     cargo bench -p understudy-protocol-tests --bench controller

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use understudy::core::chance::Chance;
use understudy::core::controller::records::{BrokerEpoch, Endpoint, Feature, PartitionChange, SecurityProtocol};
use understudy::core::controller::request::{Heartbeat, NewTopic, Registration};
use understudy::core::controller::{
    Answer, ConfigResource, ConfigRules, Configs, Context, Controller, ELR_VERSION, Image, METADATA_VERSION, Record, Refusal, Request,
    ResourceType, Settings, bootstrap,
};
use understudy::core::election::Claims;
use understudy::core::types::{BrokerId, Id, Offset};
use understudy_protocol_tests::patience::Watch;

struct Rules;

impl ConfigRules for Rules {
    fn check(&self, _: &Image, _: &ConfigResource, _: &Configs) -> Result<(), Refusal> {
        Ok(())
    }

    fn list_default(&self, _: ResourceType, _: &str) -> Option<String> {
        None
    }
}

struct Counting(u64);

impl Chance for Counting {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

struct World {
    controller: Controller,
    chance: Counting,
    next: Offset,
}

fn features() -> Vec<Feature> {
    [(METADATA_VERSION, 7, 30), (ELR_VERSION, 0, 1)].map(|(name, min, max)| Feature { name: name.into(), min, max }).to_vec()
}

impl World {
    /// Three brokers with replicas of `topics` topics of `partitions` partitions each.
    fn new(topics: usize, partitions: i32) -> World {
        let settings = Settings {
            default_partitions: 1,
            default_replication_factor: 3,
            unclean_election: false,
            min_insync_replicas: 2,
            features: features(),
            rules: Arc::new(Rules),
        };
        let mut world = World { controller: Controller::new(Image::empty("c"), settings), chance: Counting(1), next: Offset(0) };
        world.append(&bootstrap(30, &[(ELR_VERSION, 1)], 2));
        for id in 1..=3 {
            let endpoint =
                Endpoint { name: "PLAINTEXT".into(), host: "h".into(), port: 9092, security_protocol: SecurityProtocol::Plaintext };
            let registration = Registration {
                cluster_id: "c".into(),
                broker: BrokerId(id),
                incarnation_id: Id(id as u128),
                endpoints: vec![endpoint],
                features: features(),
                rack: None,
                log_dirs: vec![Id(1000 + id as u128)],
                previous_epoch: None,
                session_alive: false,
            };
            let Answer::RegisterBroker(Ok(epoch)) = world.ask(Request::RegisterBroker(registration)) else { panic!("refused") };
            world.ask(Request::Heartbeat(Heartbeat::new(BrokerId(id), epoch, world.next)));
        }
        for n in 0..topics {
            let topic = NewTopic { name: format!("t{n}"), partitions, replication_factor: 3, assignments: vec![], configs: vec![] };
            world.ask(Request::CreateTopics { topics: vec![topic], validate_only: false });
        }
        world
    }

    fn decide(&mut self, request: Request) -> (Vec<Record>, Answer) {
        let claims = Claims::default();
        let mut cx = Context { next: self.next, chance: &mut self.chance, claims: &claims };
        let decision = self.controller.decide(request, &mut cx);
        (decision.records, decision.answer)
    }

    fn append(&mut self, records: &[Record]) {
        for record in records {
            self.controller.apply(self.next, record).expect("our own record");
            self.next = self.next + 1;
        }
    }

    fn ask(&mut self, request: Request) -> Answer {
        let (records, answer) = self.decide(request);
        self.append(&records);
        answer
    }

    fn epoch(&self, id: i32) -> BrokerEpoch {
        self.controller.image().broker(BrokerId(id)).expect("it is registered").broker_epoch
    }
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 2]
}

fn report(what: &str, took: Duration) {
    println!("{what:<70} {:>10.3} ms", took.as_secs_f64() * 1000.0);
}

/// A third of 30,000 partitions lose their leader with one broker.
fn ten_thousand_leaders_gone() {
    let (mut deciding, mut applying) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let mut world = World::new(10, 3000);
        let request = Request::Fence(vec![(BrokerId(1), world.epoch(1))]);
        let from = Watch::start();
        let (records, _) = world.decide(request);
        deciding.push(from.elapsed());
        let from = Watch::start();
        world.append(&records);
        applying.push(from.elapsed());
        let moved = records.iter().filter(|record| matches!(record, Record::PartitionChange(change) if change.leader.is_some())).count();
        assert!((9_000..=11_000).contains(&moved) && records.len() > 30_000, "{moved} of {}", records.len());
    }
    let (deciding, applying) = (median(deciding), median(applying));
    report("10,000 of 30,000 partitions lose their leader: decide (30,001 records)", deciding);
    report("  apply", applying);
    report("  both", deciding + applying);
}

/// As a broker does for each published image: clone it, apply a record, keep the old one.
fn one_of_a_hundred_thousand() {
    for (topics, partitions) in [(100, 1000), (10, 10_000), (10_000, 10)] {
        let mut world = World::new(topics, partitions);
        let ids: Vec<_> = world.controller.image().topics().map(|topic| topic.id).collect();
        let mut times = Vec::new();
        let mut image = world.controller.image().clone();
        for n in 0..2000usize {
            let isr = Some(vec![BrokerId(1 + (n % 3) as i32)]);
            let change = PartitionChange { isr, ..PartitionChange::new(ids[n * 7 % ids.len()], (n as i32 * 13) % partitions) };
            let from = Watch::start();
            let mut newer = image.clone();
            black_box(newer.apply(world.next, &Record::PartitionChange(change)).expect("it is there"));
            times.push(from.elapsed());
            image = newer;
        }
        report(&format!("one of 100,000 partitions changes ({topics} topics), per image"), median(times));
        let (from, request) = (Watch::start(), Request::Fence(vec![(BrokerId(1), world.epoch(1))]));
        let (records, _) = world.decide(request);
        report(&format!("  a broker is fenced there: decide ({} records)", records.len()), from.elapsed());
    }
}

fn main() {
    ten_thousand_leaders_gone();
    one_of_a_hundred_thousand();
}

//! Random lives of one partition: brokers that produce, copy, fall behind, stop, are killed and come back. Whoever is elected without an
//! election that allows loss has every record that was acknowledged, as long as no disk forgets.

use super::elections::three;
use super::*;
use crate::core::controller::records::LeaderRecovery;
use crate::core::election::{Claim, Source};
use crate::core::types::Epoch;

#[derive(Default)]
struct Broker {
    alive: bool,
    /// Leader epoch and value of each record.
    log: Vec<(i32, u32)>,
    /// The registration in which it stopped in good order.
    stopped_in: Option<BrokerEpoch>,
}

struct Model {
    world: World,
    brokers: Vec<Broker>,
    acked: Vec<(i32, u32)>,
    produced: u32,
}

#[derive(Debug, Clone)]
enum Act {
    Produce,
    Copy(usize),
    Join(usize),
    Lag(usize),
    Kill(usize),
    KillAll,
    Stop(usize),
    Start(usize),
    /// Survivors say what they hold.
    Ask,
    Balance,
}

fn act() -> impl Strategy<Value = Act> {
    let who = || 0usize..3;
    prop_oneof![
        6 => Just(Act::Produce),
        8 => who().prop_map(Act::Copy),
        4 => who().prop_map(Act::Join),
        1 => who().prop_map(Act::Lag),
        2 => who().prop_map(Act::Kill),
        1 => Just(Act::KillAll),
        1 => who().prop_map(Act::Stop),
        5 => who().prop_map(Act::Start),
        4 => Just(Act::Ask),
        1 => Just(Act::Balance),
    ]
}

impl Model {
    fn new() -> Model {
        let brokers = (0..3).map(|_| Broker { alive: true, ..Broker::default() }).collect();
        Model { world: three(true), brokers, acked: vec![], produced: 0 }
    }

    fn leader(&self) -> Option<usize> {
        let leader = self.world.partition("t", 0).leader;
        (leader != BrokerId::NONE).then(|| leader.0 as usize - 1)
    }

    fn in_sync(&self, who: usize) -> bool {
        self.world.partition("t", 0).isr.contains(&BrokerId(who as i32 + 1))
    }

    /// Decides, and checks what was elected.
    fn done(&mut self, request: Request) -> Decision {
        let decision = self.world.done(request);
        for election in &decision.elections {
            let Ok(source) = &election.outcome else { continue };
            assert_ne!(*source, Source::Outside, "nobody allowed that");
            let leader = &self.brokers[election.new_leader.0 as usize - 1];
            assert!(leader.alive, "{election:?}");
            assert!(leader.log.starts_with(&self.acked), "{election:?} loses {:?} of {:?}", self.acked, leader.log);
        }
        decision
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Produce => {
                let Some(leader) = self.leader() else { return };
                self.produced += 1;
                let epoch = self.world.partition("t", 0).leader_epoch.0;
                self.brokers[leader].log.push((epoch, self.produced));
            }
            // One record, after whatever the leader does not have is cut away.
            Act::Copy(who) => {
                let Some(leader) = self.leader().filter(|leader| *leader != who && self.brokers[who].alive) else { return };
                let theirs = self.brokers[leader].log.clone();
                let own = &mut self.brokers[who].log;
                let common = own.iter().zip(&theirs).take_while(|(own, theirs)| own == theirs).count();
                own.truncate(common);
                own.extend(theirs.get(common));
            }
            Act::Join(who) => {
                let Some(leader) = self.leader() else { return };
                if self.brokers[who].alive && !self.in_sync(who) && self.brokers[who].log == self.brokers[leader].log {
                    self.propose(leader, |isr| isr.push(BrokerId(who as i32 + 1)));
                }
            }
            Act::Lag(who) => {
                let Some(leader) = self.leader().filter(|leader| *leader != who) else { return };
                self.propose(leader, |isr| isr.retain(|id| id.0 != who as i32 + 1));
            }
            Act::Kill(who) => self.kill(&[who]),
            Act::KillAll => self.kill(&[0, 1, 2]),
            Act::Stop(who) => {
                if !self.brokers[who].alive {
                    return;
                }
                let id = who as i32 + 1;
                let epoch = self.world.epoch_of(id);
                for _ in 0..3 {
                    let heartbeat = Heartbeat { want_shutdown: true, ..Heartbeat::new(BrokerId(id), epoch, Offset(9999)) };
                    let decision = self.done(Request::Heartbeat(heartbeat));
                    if matches!(decision.answer, Answer::Heartbeat(Ok(state)) if state.may_stop) {
                        (self.brokers[who].alive, self.brokers[who].stopped_in) = (false, Some(epoch));
                        return;
                    }
                }
                panic!("it was never let go");
            }
            Act::Start(who) => {
                if self.brokers[who].alive {
                    return;
                }
                let id = who as i32 + 1;
                let previous_epoch = self.brokers[who].stopped_in.take();
                let incarnation = 1000 + self.world.log.len() as u128;
                let request = Registration { previous_epoch, ..self.world.registration(id, incarnation) };
                self.done(Request::RegisterBroker(request));
                self.brokers[who].alive = true;
                let epoch = self.world.epoch_of(id);
                self.done(Request::Heartbeat(Heartbeat::new(BrokerId(id), epoch, Offset(9999))));
            }
            Act::Ask => {
                self.world.claims = Claims::default();
                for who in 0..3 {
                    if self.brokers[who].alive {
                        let log = &self.brokers[who].log;
                        let claim = Claim { last_epoch: Epoch(log.last().map_or(-1, |last| last.0)), end: Offset(log.len() as i64) };
                        self.world.claims.note(self.world.at(), BrokerId(who as i32 + 1), claim);
                    }
                }
                self.done(Request::Recover(vec![self.world.at()]));
            }
            Act::Balance => {
                self.done(Request::Balance);
            }
        }
        self.acknowledge();
    }

    fn kill(&mut self, who: &[usize]) {
        let gone: Vec<usize> = who.iter().copied().filter(|who| std::mem::take(&mut self.brokers[*who].alive)).collect();
        let gone = gone.into_iter().map(|who| who as i32 + 1).map(|id| (BrokerId(id), self.world.epoch_of(id))).collect();
        self.done(Request::Fence(gone));
    }

    fn propose(&mut self, leader: usize, change: impl FnOnce(&mut Vec<BrokerId>)) {
        let partition = self.world.partition("t", 0);
        let mut isr = partition.isr.clone();
        change(&mut isr);
        let row = AlterPartition {
            partition: 0,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: isr.into_iter().map(|id| (id, BrokerEpoch::NONE)).collect(),
            recovery: LeaderRecovery::Recovered,
        };
        let (id, topic) = (leader as i32 + 1, self.world.at().topic);
        let request =
            Request::AlterPartitions { broker: BrokerId(id), broker_epoch: self.world.epoch_of(id), topics: vec![(topic, vec![row])] };
        self.done(request);
    }

    /// What every in-sync replica has is acknowledged, while there are enough of them.
    fn acknowledge(&mut self) {
        let Some(leader) = self.leader() else { return };
        let isr = &self.world.partition("t", 0).isr;
        if isr.len() < 2 {
            return;
        }
        let have = |id: &BrokerId| {
            let log = &self.brokers[id.0 as usize - 1].log;
            log.iter().zip(&self.brokers[leader].log).take_while(|(a, b)| a == b).count()
        };
        let mark = isr.iter().map(have).min().unwrap_or(0);
        if mark > self.acked.len() {
            self.acked = self.brokers[leader].log[..mark].to_vec();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_election_loses_what_was_acknowledged(acts in proptest::collection::vec(act(), 1..150)) {
        let mut model = Model::new();
        for act in acts {
            model.act(act);
        }
        // And it ends well: with everyone back and heard, somebody leads.
        (0..3).for_each(|who| model.act(Act::Start(who)));
        model.act(Act::Ask);
        prop_assert!(model.leader().is_some(), "{:?}", model.world.partition("t", 0));
    }
}

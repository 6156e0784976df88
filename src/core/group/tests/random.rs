//! Clients that do anything at any time, over a log that delays and fails, against a naive model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a client remembers: it believes whatever it was told last.
#[derive(Clone, Default)]
struct Client {
    /// Only of a static member.
    instance: Option<Arc<str>>,
    id: Arc<str>,
    generation: i32,
    leads: bool,
    roster: Vec<Arc<str>>,
    assignment: Option<Bytes>,
    waits: Option<Ticket>,
}

#[derive(Debug, Clone)]
enum Op {
    Join(usize),
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Commit(usize, i32),
    /// Without membership.
    CommitAlone(i32),
    FetchStable,
    DeleteGroup,
    Wait(i64),
    Hold(bool),
    Fail(usize),
    Failover,
}

const CLIENTS: usize = 4;

fn op(failing: bool) -> impl Strategy<Value = Op> {
    let client = 0..CLIENTS;
    prop_oneof![
        6 => client.clone().prop_map(Op::Join),
        6 => client.clone().prop_map(Op::Sync),
        3 => client.clone().prop_map(Op::Heartbeat),
        1 => client.clone().prop_map(Op::Leave),
        3 => (client, 0..3i32).prop_map(|(client, partition)| Op::Commit(client, partition)),
        1 => (0..3i32).prop_map(Op::CommitAlone),
        1 => Just(Op::FetchStable),
        1 => Just(Op::DeleteGroup),
        3 => prop_oneof![0..100i64, 2_000..4_000i64, 5_000..20_000i64].prop_map(Op::Wait),
        2 => any::<bool>().prop_map(Op::Hold),
        1 => if failing { (0..3usize).prop_map(Op::Fail).boxed() } else { Just(Op::Heartbeat(0)).boxed() },
        1 => Just(Op::Failover),
    ]
}

struct World {
    town: Town,
    clients: Vec<Client>,
    commits: i64,
    /// Highest generation that anybody was told since the group was last made, and what was handed out in each.
    generation: i32,
    handed: BTreeMap<(i32, Bytes), Arc<str>>,
    leaders: BTreeMap<i32, Arc<str>>,
    /// When members of the stable group were last told that they are in it: until a session has passed nobody may lose them.
    told: BTreeMap<Arc<str>, i64>,
}

/// Who has that member id: a static member is itself under all of its ids, which begin with its instance id.
fn who(member: &Arc<str>) -> Arc<str> {
    if member.starts_with("static-") { "static".into() } else { member.clone() }
}

/// As [`join_of`] has it.
const SESSION: i64 = 10_000;

impl World {
    fn listen(&mut self) {
        for i in 0..CLIENTS {
            let Some(answer) = self.clients[i].waits.and_then(|ticket| self.town.got(ticket)) else {
                continue;
            };
            let client = &mut self.clients[i];
            client.waits = None;
            match answer {
                Answer::Join(Ok(joined)) => {
                    let leader = self.leaders.entry(joined.generation).or_insert_with(|| who(&joined.leader));
                    assert_eq!(*leader, who(&joined.leader), "a generation has one leader");
                    assert!(joined.generation >= self.generation, "generations rise: {} after {}", joined.generation, self.generation);
                    self.generation = joined.generation;
                    client.leads = joined.leader == joined.member;
                    client.roster = joined.members.iter().map(|m| m.member.clone()).collect();
                    assert!(!client.leads || client.roster.contains(&joined.member));
                    if client.id != joined.member {
                        // A static member that came back: its old id is nobody's.
                        self.told.remove(&client.id);
                    }
                    (client.id, client.generation, client.assignment) = (joined.member, joined.generation, None);
                }
                Answer::Join(Err(refused)) if refused.why == Why::MemberIdRequired => client.id = refused.member,
                Answer::Join(Err(refused)) if refused.why == Why::UnknownMemberId => client.id = "".into(),
                Answer::Sync(Ok(synced)) => {
                    if !synced.assignment.is_empty() {
                        let key = (client.generation, synced.assignment.clone());
                        let owner = self.handed.entry(key).or_insert_with(|| who(&client.id));
                        assert_eq!(*owner, who(&client.id), "nothing is assigned twice in a generation");
                    }
                    client.assignment = Some(synced.assignment);
                }
                Answer::Join(Err(_)) | Answer::Sync(Err(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The group was made anew: nothing of the old one binds it.
    fn forget(&mut self) {
        self.told.clear();
        self.generation = 0;
        self.handed.clear();
        self.leaders.clear();
    }

    fn from(&self, i: usize) -> Membership {
        let client = &self.clients[i];
        Membership { instance: client.instance.clone(), ..member_of(&client.id, client.generation) }
    }

    fn heartbeat(&mut self, i: usize) -> Result<(), Why> {
        let from = self.from(i);
        let answer = self.town.heartbeat(&from);
        if answer.is_ok() && self.town.state() == State::Stable {
            self.told.insert(from.member, self.town.now);
        }
        answer
    }

    /// Whoever was told that it is a member still is.
    fn nobody_is_lost(&mut self) {
        let now = self.town.now;
        self.told.retain(|_, told| now - *told < SESSION);
        if self.told.is_empty() {
            return;
        }
        let members: Vec<Arc<str>> =
            self.town.describe("g").into_iter().flat_map(|group| group.members).map(|member| member.member).collect();
        for (id, told) in &self.told {
            assert!(members.contains(id), "{id} was told at {told} that it is a member, and at {now} there are only {members:?}");
        }
    }

    fn step(&mut self, op: &Op) {
        if self.town.state() == State::Dead {
            self.forget();
        }
        match *op {
            // A client asks for one thing at a time.
            Op::Join(i) if self.clients[i].waits.is_none() => {
                let client = &self.clients[i];
                let join = Join { instance: client.instance.clone(), ..join_of(&client.id, "client") };
                if client.instance.is_some() && client.id.is_empty() {
                    // It takes over from whoever had its instance id.
                    let described = self.town.describe("g");
                    let same = described.into_iter().flat_map(|group| group.members).filter(|member| member.instance == join.instance);
                    same.for_each(|member| _ = self.told.remove(&member.member));
                }
                self.clients[i].waits = Some(self.town.ask(Request::Join(join)));
            }
            Op::Sync(i) if self.clients[i].waits.is_none() => {
                let client = &self.clients[i];
                let all: Vec<Membership> = client.roster.iter().map(|id| member_of(id, 0)).collect();
                let request = sync(&self.from(i), if client.leads { &all } else { &[] });
                self.clients[i].waits = Some(self.town.ask(request));
            }
            Op::Heartbeat(i) => _ = self.heartbeat(i),
            Op::Leave(i) => {
                let members = vec![Leaver { member: self.clients[i].id.clone(), instance: None, reason: None }];
                self.told.remove(&self.clients[i].id);
                self.town.ask(Request::Leave(Leave { group: "g".into(), members }));
                self.clients[i].id = "".into();
            }
            Op::Commit(i, partition) => {
                self.commits += 1;
                let request = commit(&self.from(i), partition, self.commits);
                self.town.ask(request);
            }
            Op::CommitAlone(partition) => {
                self.commits += 1;
                self.town.ask(commit(&nobody("g"), partition, self.commits));
            }
            Op::FetchStable => {
                self.town.ask(Request::Fetch(Fetch { group: "g".into(), topics: None, require_stable: true, member: None, epoch: -1 }));
            }
            Op::DeleteGroup => {
                self.town.ask(Request::DeleteGroups(vec!["g".into()]));
            }
            Op::Wait(millis) => self.town.wait(millis),
            Op::Hold(hold) => {
                self.town.hold = hold;
                if !hold {
                    self.town.release();
                }
            }
            Op::Fail(at) if at < self.town.held.len() => self.town.fail(at, Why::CoordinatorNotAvailable),
            Op::Failover => {
                // Whether what is under way gets into the log or not, all who wait are told.
                let next = self.town.again();
                let last = std::mem::replace(&mut self.town, next);
                last.unload();
                self.clients.iter_mut().for_each(|client| client.waits = None);
                self.forget();
                self.generation = 0;
            }
            Op::Join(_) | Op::Sync(_) | Op::Fail(_) => {}
        }
        self.listen();
    }
}

/// What the records amount to, with no cleverness at all.
fn fold(log: &[GroupRecord]) -> BTreeMap<(String, i32), i64> {
    let mut offsets = BTreeMap::new();
    for record in log {
        if let GroupRecord::Offset { topic, partition, value, .. } = record {
            match value {
                Some(value) => _ = offsets.insert((topic.to_string(), *partition), value.offset.0),
                None => _ = offsets.remove(&(topic.to_string(), *partition)),
            }
        }
    }
    offsets
}

fn run(ops: &[Op]) -> World {
    let mut clients = vec![Client { generation: -1, ..Client::default() }; CLIENTS];
    clients[0].instance = Some("static".into());
    let (handed, leaders, told) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut world = World { town: Town::new(), clients, commits: 0, generation: 0, handed, leaders, told };
    for op in ops {
        world.step(op);
        world.nobody_is_lost();
        let offsets: BTreeMap<_, _> = world.town.offsets("g").into_iter().map(|(topic, index, offset)| ((topic, index), offset)).collect();
        assert_eq!(offsets, fold(&world.town.log), "offsets are what is committed, after {op:?}");
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn everybody_is_answered_once_and_the_promises_hold(ops in proptest::collection::vec(op(true), 0..120)) {
        run(&ops).town.unload();
    }

    #[test]
    fn who_replays_the_log_stands_where_the_last_coordinator_stood(ops in proptest::collection::vec(op(false), 0..120)) {
        let mut world = run(&ops);
        world.town.hold = false;
        world.town.release();
        // Let everything settle: whoever does not speak is out.
        world.town.wait(400_000);
        let mut again = world.town.again();
        prop_assert_eq!(world.town.offsets("g"), again.offsets("g"));
        let (live, replayed) = (world.town.describe("g"), again.describe("g"));
        prop_assert_eq!(live.as_ref().map(|g| (g.state, &g.protocol_type)), replayed.as_ref().map(|g| (g.state, &g.protocol_type)));
        prop_assert_eq!(world.town.unanswered(), 0);
    }

    #[test]
    fn clients_that_do_what_they_should_end_up_stable(ops in proptest::collection::vec(op(true), 0..80)) {
        let mut world = run(&ops);
        world.town.hold = false;
        world.town.release();
        for _ in 0..20 {
            for i in 0..CLIENTS {
                if world.clients[i].waits.is_none() && world.heartbeat(i).is_err() {
                    world.step(&Op::Join(i));
                } else if world.clients[i].assignment.is_none() {
                    world.step(&Op::Sync(i));
                }
            }
            world.town.wait(3_000);
            world.listen();
        }
        let group = world.town.describe("g").unwrap();
        prop_assert_eq!((group.state, group.members.len()), (State::Stable, CLIENTS));
        // And a failover does not change it.
        prop_assert_eq!(world.town.again().describe("g").unwrap(), group);
    }
}

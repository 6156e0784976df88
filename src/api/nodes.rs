//! The brokers as the clients of one listener see them, and what they see of a partition's replicas: a broker without that listener
//! is as good as gone for them. Made once for a request, so that each replica costs a short search and no more.

use crate::core::controller::records::Endpoint;
use crate::core::controller::{Broker, Image, Partition};
use crate::core::types::{BrokerId, DirectoryId, Id};

/// A replica whose directory is one of the reserved ids up to UNASSIGNED counts as online: nobody has said where it lies.
const UNASSIGNED: DirectoryId = Id::ONE;

/// One broker.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// Its registration.
    pub broker: &'a Broker,
    /// Where this listener's clients reach it.
    pub endpoint: Option<&'a Endpoint>,
}

impl Node<'_> {
    /// Whether it is up and reachable by the listener.
    pub fn is_alive(&self) -> bool {
        !self.broker.fenced && self.endpoint.is_some()
    }
}

/// All registered brokers, in id order.
#[derive(Debug)]
pub struct Nodes<'a>(Vec<Node<'a>>);

impl<'a> Nodes<'a> {
    /// What the clients of `listener` see in that image.
    pub fn new(image: &'a Image, listener: &str) -> Nodes<'a> {
        Nodes(image.brokers().map(|broker| Node { broker, endpoint: broker.endpoint(listener) }).collect())
    }

    /// The broker of that id, fenced or not.
    pub fn get(&self, id: BrokerId) -> Option<&Node<'a>> {
        self.0.binary_search_by_key(&id, |node| node.broker.id).ok().map(|at| &self.0[at])
    }

    /// Brokers with an endpoint, fenced ones too.
    pub fn reachable(&self) -> impl Iterator<Item = (&'a Broker, &'a Endpoint)> {
        self.0.iter().filter_map(|node| Some((node.broker, node.endpoint?)))
    }

    /// Brokers to tell clients of.
    pub fn alive(&self) -> impl Iterator<Item = (&'a Broker, &'a Endpoint)> {
        self.reachable().filter(|(broker, _)| !broker.fenced)
    }

    /// Who is called the controller: any broker that is up, because each carries requests to the real one. Another one for each request
    /// of a client, which are numbered by `correlation`.
    pub fn controller(&self, correlation: i32) -> BrokerId {
        let up: Vec<BrokerId> = self.0.iter().filter(|node| !node.broker.fenced).map(|node| node.broker.id).collect();
        if up.is_empty() { BrokerId::NONE } else { up[correlation as u32 as usize % up.len()] }
    }

    /// The leader, if it can be reached.
    pub fn leader(&self, partition: &Partition) -> Option<BrokerId> {
        self.get(partition.leader).and_then(|node| node.endpoint).map(|_| partition.leader)
    }

    /// Those of `ids` that are alive.
    pub fn alive_of<'i>(&'i self, ids: &'i [BrokerId]) -> impl Iterator<Item = BrokerId> + 'i {
        ids.iter().copied().filter(|id| self.get(*id).is_some_and(Node::is_alive))
    }

    /// The replicas that cannot serve: fenced, unregistered, without the listener, or in a directory that is offline.
    pub fn offline<'i>(&'i self, partition: &'i Partition) -> impl Iterator<Item = BrokerId> + Clone + 'i {
        let online = |at: usize, id: &BrokerId| {
            let Some(node) = self.get(*id).filter(|node| node.is_alive()) else { return false };
            let dirs = &node.broker.log_dirs;
            let directory = partition.directories.get(at);
            directory.is_none_or(|directory| *directory <= UNASSIGNED || dirs.is_empty() || dirs.contains(directory))
        };
        partition.replicas.iter().enumerate().filter(move |(at, id)| !online(*at, id)).map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, image_of, partition};

    #[test]
    fn replicas_are_offline_for_each_reason() {
        let mut without = broker(3);
        without.endpoints[0].name = "OTHER".into();
        let mut dirs = broker(4);
        dirs.log_dirs = vec![Id(44)];
        let fenced = Broker { fenced: true, ..broker(2) };
        let image = image_of([broker(1), fenced, without, dirs], []);
        let nodes = Nodes::new(&image, "PLAINTEXT");
        let mut led = partition(1, &[1, 2, 3, 4, 5], &[1, 2]);
        led.directories = vec![Id::ONE, Id::ONE, Id::ONE, Id(99), Id::ONE];
        assert_eq!(nodes.offline(&led).collect::<Vec<_>>(), [2, 3, 4, 5].map(BrokerId));
        led.directories[3] = Id(44);
        assert_eq!(nodes.offline(&led).collect::<Vec<_>>(), [2, 3, 5].map(BrokerId));
        assert_eq!(nodes.alive_of(&led.isr).collect::<Vec<_>>(), [BrokerId(1)]);
        assert_eq!(nodes.leader(&led), Some(BrokerId(1)));
        assert_eq!(nodes.leader(&Partition { leader: BrokerId(3), ..led.clone() }), None);
        assert_eq!(nodes.alive().map(|(broker, _)| broker.id.0).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn the_controller_is_somebody_alive() {
        let image = image_of([Broker { fenced: true, ..broker(1) }, broker(2)], []);
        assert_eq!(Nodes::new(&image, "PLAINTEXT").controller(7), BrokerId(2));
        let image = image_of([broker(1), broker(2), broker(3)], []);
        let nodes = Nodes::new(&image, "PLAINTEXT");
        assert_eq!([0, 1, 2, -1].map(|correlation| nodes.controller(correlation).0), [1, 2, 3, 1]);
        assert_eq!(Nodes::new(&image_of([], []), "PLAINTEXT").controller(7), BrokerId::NONE);
    }
}

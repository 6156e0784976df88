//! Tells a parent that its child actor is gone, however it went.

use actix::prelude::*;

/// Lives in an actor's struct; when the actor is dropped, panic or not, its supervisor gets a [`Died`].
pub struct DeathWatch<N: Send + Clone + 'static> {
    name: N,
    generation: u32,
    supervisor: Recipient<Died<N>>,
}

/// An actor is gone. From: the `DeathWatch` inside it. Lost: only when the supervisor is gone too.
#[derive(Message, Debug, PartialEq, Eq)]
#[rtype(result = "()")]
pub struct Died<N: Send + Clone + 'static> {
    /// Which child.
    pub name: N,
    /// Which incarnation of it; a late message about an earlier one is ignored.
    pub generation: u32,
    /// Whether it panicked; else it stopped as told.
    pub panicked: bool,
}

impl<N: Send + Clone + 'static> DeathWatch<N> {
    /// A watch for one incarnation of a child.
    pub fn new(name: N, generation: u32, supervisor: Recipient<Died<N>>) -> Self {
        DeathWatch { name, generation, supervisor }
    }
}

impl<N: Send + Clone + 'static> Drop for DeathWatch<N> {
    fn drop(&mut self) {
        let died = Died { name: self.name.clone(), generation: self.generation, panicked: std::thread::panicking() };
        self.supervisor.do_send(died);
    }
}

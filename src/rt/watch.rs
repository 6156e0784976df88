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

/// Lives in the struct of an actor that the process cannot do without. A panic there ends the process: going on half dead would be worse,
/// and what the actor knew is in its log.
pub struct Essential(pub &'static str);

impl Drop for Essential {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(actor = self.0, "an essential actor panicked; stopping at once, the next start recovers");
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process that is to die.
    const DIE: &str = "UNDERSTUDY_TEST_ESSENTIAL";

    #[test]
    fn a_panic_of_an_essential_actor_ends_the_process() {
        if std::env::var_os(DIE).is_some() {
            let outcome = std::panic::catch_unwind(|| {
                let _essential = Essential("test");
                panic!("as a handler might");
            });
            unreachable!("the process lives on after {outcome:?}");
        }
        let me = std::env::current_exe().expect("a test has an executable");
        let mut child = std::process::Command::new(me);
        child.args(["--exact", "rt::watch::tests::a_panic_of_an_essential_actor_ends_the_process", "--nocapture"]).env(DIE, "1");
        let ended = child.output().expect("the test can run itself");
        // A failed test would end with 101.
        assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

//! What we add to actix: reply ports, one way to send, a death watch and the clock.
//!
//! actix mailboxes are unbounded in practice, `send` drops work when its caller goes away and `Supervisor` does not restart after a
//! panic. So messages carry a reply port and go out with `Tell`; work is bounded where it enters (see `net::admission`); and each
//! actor holds a [`DeathWatch`] that tells its parent when it is gone.

pub mod clock;
pub mod port;
pub mod tell;
pub mod watch;

pub use port::{Answer, Gone, Reply, port};
pub use tell::Tell;
pub use watch::{DeathWatch, Died, Essential};

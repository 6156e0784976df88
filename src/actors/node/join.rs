//! How a broker joins its cluster and leaves it: what it registers with, and how long it waits for its leaderships to be taken over.

use super::CannotStart;
use crate::actors::link::{Join, Leave};
use crate::api::Broker;
use crate::core::controller::records::{BrokerEpoch, Endpoint};
use crate::core::controller::request::Registration;
use crate::core::types::DirectoryId;
use crate::rt::{Tell, port};
use std::time::Duration;

/// How long a broker that stops waits for the controller. Without a quorum there is none, and it is not to hang.
const FAREWELL: Duration = Duration::from_secs(5);

/// Registers this broker and has it unfenced; returns its broker epoch. When it returns, every partition that it leads can be served.
pub async fn join(
    broker: &Broker,
    endpoints: Vec<Endpoint>,
    log_dirs: Vec<DirectoryId>,
    previous_epoch: Option<BrokerEpoch>,
) -> Result<BrokerEpoch, CannotStart> {
    let registration = Registration {
        cluster_id: broker.cluster_id.to_string(),
        broker: broker.node,
        incarnation_id: crate::cli::random_id(),
        endpoints,
        features: broker.features.clone(),
        rack: broker.config.broker_rack.clone(),
        log_dirs,
        previous_epoch,
        // Its controller knows.
        session_alive: false,
    };
    let (reply, answer) = port();
    broker.link.tell(Join { registration, reply });
    match answer.await {
        Ok(outcome) => outcome.map_err(|refusal| CannotStart::Refused(refusal.to_string())),
        Err(gone) => Err(CannotStart::Refused(gone.to_string())),
    }
}

/// Hands this broker's leaderships over, if there is anybody to take them.
pub async fn leave(broker: &Broker) {
    let others = broker.image.load().brokers().any(|other| other.id != broker.node && !other.fenced);
    if !broker.config.is_broker() || !others {
        return;
    }
    let (reply, answer) = port();
    broker.link.tell(Leave { reply });
    match tokio::time::timeout(FAREWELL, answer).await {
        Ok(_) => tracing::info!("leaderships are handed over"),
        Err(_) => tracing::warn!("no controller agreed to this stop in time: the others will notice that this broker is gone"),
    }
}

//! How a broker joins its cluster: registers, waits until its own registration has come back through the log, asks to be unfenced.

use super::CannotStart;
use crate::actors::controller::{Controller, Decide, NotActive};
use crate::api::Broker;
use crate::core::controller::records::{BrokerEpoch, Endpoint};
use crate::core::controller::request::{Answer, Heartbeat, Refusal, Registration, Request};
use crate::core::types::DirectoryId;
use crate::rt::{Tell, port};
use actix::Addr;
use std::time::Duration;

/// How long to wait before asking a controller again that does not lead yet.
const NOT_YET: Duration = Duration::from_millis(1);

/// Registers this broker and has it unfenced; returns its broker epoch. When it returns, every partition that it leads can be served.
pub async fn join(
    broker: &Broker,
    controller: &Addr<Controller>,
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
        // The directories are locked by this process, so whoever was registered before is gone.
        session_alive: false,
    };
    let epoch = match ask(controller, Request::RegisterBroker(registration)).await? {
        Answer::RegisterBroker(outcome) => outcome.map_err(refused)?,
        other => return Err(CannotStart::Refused(format!("unexpected answer {other:?}"))),
    };
    let heartbeat = Heartbeat::new(broker.node, epoch, broker.image.load().offset());
    match ask(controller, Request::Heartbeat(heartbeat)).await? {
        Answer::Heartbeat(Ok(state)) if !state.fenced => Ok(epoch),
        Answer::Heartbeat(outcome) => {
            Err(outcome.map_or_else(refused, |state| CannotStart::Refused(format!("it stays fenced: {state:?}"))))
        }
        other => Err(CannotStart::Refused(format!("unexpected answer {other:?}"))),
    }
}

fn refused(refusal: Refusal) -> CannotStart {
    CannotStart::Refused(refusal.to_string())
}

async fn ask(controller: &Addr<Controller>, request: Request) -> Result<Answer, CannotStart> {
    loop {
        let (reply, answer) = port();
        controller.tell(Decide { request: request.clone(), reply });
        match answer.await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(NotActive)) => tokio::time::sleep(NOT_YET).await,
            Err(gone) => return Err(CannotStart::Refused(gone.to_string())),
        }
    }
}

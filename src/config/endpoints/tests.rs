//! Listener and quorum keys, right and wrong.

use super::*;

fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Resolves with the given listeners, advertised listeners, controller names and voters; "" is absent.
fn resolved(listeners: &str, advertised: &str, controllers: &str, voters: &str, roles: &str) -> Result<Endpoints, String> {
    let (listeners, advertised, controllers, voters) = (list(listeners), list(advertised), list(controllers), list(voters));
    resolve(&Wanted {
        listeners: &listeners,
        advertised: (!advertised.is_empty()).then_some(&advertised[..]),
        protocols: ("PLAINTEXT:PLAINTEXT,SSL:SSL,HOST:PLAINTEXT", false),
        controller_names: &controllers,
        inter_broker_name: None,
        inter_broker_protocol: ("PLAINTEXT", false),
        voters: &voters,
        bootstrap_servers: &[],
        node_id: 1,
        is_broker: roles.contains("broker"),
        is_controller: roles.contains("controller"),
    })
    .map_err(|Conflict { key, reason }| format!("{key}: {reason}"))
}

#[test]
fn listeners_are_parted_by_role() {
    let both = "broker,controller";
    let found = resolved("plaintext://127.0.0.1:0 CTL://[::1]:9093 HOST://:9094", "", "CTL", "1@localhost:9093", both).unwrap();
    let show = |endpoints: &[Endpoint]| endpoints.iter().map(|e| e.to_string()).collect::<Vec<_>>();
    assert_eq!(show(&found.listeners), ["PLAINTEXT://127.0.0.1:0", "HOST://:9094"]);
    assert_eq!(show(&found.controller_listeners), ["CTL://[::1]:9093"]);
    assert_eq!(show(&found.advertised), show(&found.listeners));
    assert_eq!(found.voters, [Voter { id: 1, host: "localhost".into(), port: 9093 }]);
    assert_eq!(found.inter_broker, "PLAINTEXT");
    let alone = resolved("PLAINTEXT://localhost:9092", "", "", "", both).unwrap();
    assert_eq!((alone.controller_listeners.len(), alone.voters.len()), (0, 0));
}

#[test]
fn contradictions_are_named() {
    let both = "broker,controller";
    for (listeners, advertised, controllers, voters, roles, expected) in [
        ("PLAINTEXT:9092", "", "", "", both, "listeners: \"PLAINTEXT:9092\" is not NAME://host:port"),
        ("PLAINTEXT://h:99999", "", "", "", both, "listeners: \"PLAINTEXT://h:99999\" is not NAME://host:port"),
        ("OTHER://h:1", "", "", "", both, "listeners: listener.security.protocol.map has no entry for OTHER"),
        ("SSL://h:1", "", "", "", both, "listeners: SSL://h:1 is SSL, which this broker does not speak yet; use PLAINTEXT"),
        ("PLAINTEXT://h:1 HOST://h:1", "", "", "", both, "listeners: PLAINTEXT://h:1 and HOST://h:1 have the same port"),
        ("PLAINTEXT://h:1 PLAINTEXT://h:2", "", "", "", both, "listeners: two listeners are called PLAINTEXT"),
        (
            "PLAINTEXT://0.0.0.0:1",
            "",
            "",
            "",
            both,
            "listeners: PLAINTEXT://0.0.0.0:1 cannot be advertised: clients cannot connect to 0.0.0.0; set advertised.listeners",
        ),
        ("PLAINTEXT://h:1", "HOST://h:1", "", "", both, "advertised.listeners: HOST is not a name in listeners (PLAINTEXT)"),
        ("HOST://h:1", "", "", "", both, "inter.broker.listener.name: PLAINTEXT is not an advertised listener (HOST)"),
        ("CTL://h:1", "", "CTL", "", both, "listeners: no listener is left for clients: all are in controller.listener.names"),
        ("PLAINTEXT://h:1", "", "", "2@h:2", both, "controller.quorum.voters: node 1 has the controller role and must be among the voters"),
        ("PLAINTEXT://h:1", "", "", "1@h", both, "controller.quorum.voters: \"1@h\" is not id@host:port"),
        ("PLAINTEXT://h:1", "", "", "1@h:1 1@g:1", both, "controller.quorum.voters: node 1 is there twice"),
        ("PLAINTEXT://h:1", "", "CTL", "1@h:1", both, "controller.listener.names: CTL has no address in listeners"),
        (
            "PLAINTEXT://h:1",
            "",
            "",
            "1@h:1 2@h:2",
            both,
            "controller.listener.names: other voters could not reach this one: name a listener for the quorum",
        ),
        (
            "PLAINTEXT://h:1",
            "",
            "",
            "",
            "broker",
            "controller.quorum.voters: a broker without the controller role needs the addresses of the controllers",
        ),
        (
            "PLAINTEXT://h:1",
            "",
            "CTL",
            "1@h:2",
            "broker",
            "controller.quorum.voters: node 1 is among the voters, but process.roles is broker only",
        ),
        (
            "PLAINTEXT://h:1 CTL://h:2",
            "",
            "CTL",
            "1@h:2",
            "controller",
            "listeners: PLAINTEXT is for brokers, but process.roles is controller only",
        ),
    ] {
        assert_eq!(resolved(listeners, advertised, controllers, voters, roles).unwrap_err(), expected);
    }
}

#[test]
fn one_port_may_serve_two_families() {
    assert!(resolved("PLAINTEXT://127.0.0.1:9092 HOST://[::1]:9092", "", "", "", "broker,controller").is_ok());
}

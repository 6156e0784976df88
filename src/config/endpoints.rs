//! What the listener keys and the quorum keys come to: addresses with their names and protocols, checked against each other by
//! Kafka's rules (`kraft.md` section 8.1). Nothing is resolved or bound here.

use std::collections::BTreeMap;
use std::fmt;

/// What is spoken on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Neither encryption nor authentication.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without encryption.
    SaslPlaintext,
    /// SASL within TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// Kafka's name of it.
    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    /// Its number in broker registrations.
    pub fn id(self) -> i16 {
        match self {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        }
    }

    fn of(name: &str) -> Option<SecurityProtocol> {
        use SecurityProtocol::*;
        [Plaintext, Ssl, SaslPlaintext, SaslSsl].into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

/// A named address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Name of the listener, in capitals.
    pub name: String,
    /// What is spoken there.
    pub protocol: SecurityProtocol,
    /// Host name or address. None: every interface where it is bound, this machine's name where it is advertised.
    pub host: Option<String>,
    /// 0 where it is bound: a free one. 0 where it is advertised: the one that was bound.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.as_deref() {
            Some(host) if host.contains(':') => write!(f, "{}://[{host}]:{}", self.name, self.port),
            host => write!(f, "{}://{}:{}", self.name, host.unwrap_or(""), self.port),
        }
    }
}

/// A voter of a static metadata quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// Its node id.
    pub id: i32,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The addresses of this process and of its metadata quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// To bind for clients and brokers.
    pub listeners: Vec<Endpoint>,
    /// To bind for the metadata quorum. Empty: nobody else takes part.
    pub controller_listeners: Vec<Endpoint>,
    /// To tell clients and brokers.
    pub advertised: Vec<Endpoint>,
    /// Name of the listener that brokers use among themselves.
    pub inter_broker: String,
    /// The static voters; empty: this node alone.
    pub voters: Vec<Voter>,
}

/// The keys that decide the endpoints, as given or by default.
pub(super) struct Wanted<'a> {
    pub listeners: &'a [String],
    pub advertised: Option<&'a [String]>,
    /// The protocol map, and whether it was given.
    pub protocols: (&'a str, bool),
    pub controller_names: &'a [String],
    pub inter_broker_name: Option<&'a str>,
    /// Protocol among brokers, and whether it was given.
    pub inter_broker_protocol: (&'a str, bool),
    pub voters: &'a [String],
    pub bootstrap_servers: &'a [String],
    pub node_id: i32,
    pub is_broker: bool,
    pub is_controller: bool,
}

/// A key at odds with itself or with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub key: &'static str,
    pub reason: String,
}

fn conflict(key: &'static str, reason: impl Into<String>) -> Conflict {
    Conflict { key, reason: reason.into() }
}

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
const PROTOCOLS: &str = "listener.security.protocol.map";
const CONTROLLERS: &str = "controller.listener.names";
const INTER_BROKER: &str = "inter.broker.listener.name";
const VOTERS: &str = "controller.quorum.voters";

/// Reads and checks the keys; the first conflict is the answer.
pub(super) fn resolve(wanted: &Wanted) -> Result<Endpoints, Conflict> {
    let controller_names: Vec<String> = wanted.controller_names.iter().map(|name| name.to_ascii_uppercase()).collect();
    let protocols = protocol_map(wanted, &controller_names)?;
    let all = endpoints(LISTENERS, wanted.listeners, &protocols)?;
    distinct_ports(&all)?;
    let is_controllers = |endpoint: &Endpoint| controller_names.contains(&endpoint.name);
    let (controller_listeners, listeners): (Vec<_>, Vec<_>) = all.into_iter().partition(is_controllers);
    let advertised: Vec<Endpoint> = match wanted.advertised {
        Some(entries) => endpoints(ADVERTISED, entries, &protocols)?.into_iter().filter(|e| !is_controllers(e)).collect(),
        None => listeners.clone(),
    };
    if let Some(unroutable) = advertised.iter().find(|e| e.host.as_deref() == Some("0.0.0.0")) {
        let where_from = if wanted.advertised.is_some() { ADVERTISED } else { LISTENERS };
        return Err(conflict(
            where_from,
            format!("{unroutable} cannot be advertised: clients cannot connect to 0.0.0.0; set {ADVERTISED}"),
        ));
    }
    let inter_broker = inter_broker_name(wanted, &protocols)?;
    if wanted.is_broker {
        if listeners.is_empty() {
            return Err(conflict(LISTENERS, format!("no listener is left for clients: all are in {CONTROLLERS}")));
        }
        if let Some(stray) = advertised.iter().find(|a| !listeners.iter().any(|l| l.name == a.name)) {
            return Err(conflict(ADVERTISED, format!("{} is not a name in {LISTENERS} ({})", stray.name, names(&listeners))));
        }
        if !advertised.iter().any(|endpoint| endpoint.name == inter_broker) {
            return Err(conflict(INTER_BROKER, format!("{inter_broker} is not an advertised listener ({})", names(&advertised))));
        }
    }
    let voters = voters(wanted.voters)?;
    quorum(wanted, &voters, &controller_names, &controller_listeners, &listeners)?;
    Ok(Endpoints { listeners, controller_listeners, advertised, inter_broker, voters })
}

fn names(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn protocol_map(wanted: &Wanted, controller_names: &[String]) -> Result<BTreeMap<String, SecurityProtocol>, Conflict> {
    let (text, given) = wanted.protocols;
    let mut map = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, protocol) = entry.rsplit_once(':').ok_or_else(|| conflict(PROTOCOLS, format!("{entry:?} is not NAME:PROTOCOL")))?;
        let protocol = SecurityProtocol::of(protocol.trim())
            .ok_or_else(|| conflict(PROTOCOLS, format!("{protocol:?} is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")))?;
        map.insert(name.trim().to_ascii_uppercase(), protocol);
    }
    // Nobody spoke of protocols: the controllers' listeners need no entry of their own.
    let secure = |name: &str| SecurityProtocol::of(name).is_some_and(|protocol| protocol != SecurityProtocol::Plaintext);
    let listener_names = wanted.listeners.iter().map(|entry| entry.split(':').next().unwrap_or(""));
    if !given && !controller_names.iter().map(String::as_str).chain(listener_names).any(secure) {
        for name in controller_names {
            map.entry(name.clone()).or_insert(SecurityProtocol::Plaintext);
        }
    }
    Ok(map)
}

fn endpoints(key: &'static str, entries: &[String], protocols: &BTreeMap<String, SecurityProtocol>) -> Result<Vec<Endpoint>, Conflict> {
    let mut found: Vec<Endpoint> = Vec::new();
    for entry in entries {
        let malformed = || conflict(key, format!("{entry:?} is not NAME://host:port"));
        let (name, address) = entry.split_once("://").ok_or_else(malformed)?;
        let (host, port) = host_and_port(address).ok_or_else(malformed)?;
        let name = name.to_ascii_uppercase();
        let protocol = *protocols.get(&name).ok_or_else(|| conflict(key, format!("{PROTOCOLS} has no entry for {name}")))?;
        if protocol != SecurityProtocol::Plaintext {
            return Err(conflict(key, format!("{entry} is {}, which this broker does not speak yet; use PLAINTEXT", protocol.name())));
        }
        if found.iter().any(|endpoint| endpoint.name == name) {
            return Err(conflict(key, format!("two listeners are called {name}")));
        }
        found.push(Endpoint { name, protocol, host: (!host.is_empty()).then(|| host.to_owned()), port });
    }
    Ok(found)
}

/// `host:port`, `[v6]:port`, or `:port`.
pub(super) fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => host,
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '%' | '.' | '_' | ':');
    (host.chars().all(allowed) && port.bytes().all(|b| b.is_ascii_digit())).then_some((host, port.parse().ok()?))
}

/// Two listeners may share a port only if one is IPv4 and the other IPv6.
fn distinct_ports(endpoints: &[Endpoint]) -> Result<(), Conflict> {
    let family = |endpoint: &Endpoint| endpoint.host.as_deref().and_then(|host| Some(host.parse::<std::net::IpAddr>().ok()?.is_ipv4()));
    for (i, one) in endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.port != 0) {
        for other in endpoints[..i].iter().filter(|other| other.port == one.port) {
            if !matches!((family(one), family(other)), (Some(a), Some(b)) if a != b) {
                return Err(conflict(LISTENERS, format!("{other} and {one} have the same port")));
            }
        }
    }
    Ok(())
}

fn inter_broker_name(wanted: &Wanted, protocols: &BTreeMap<String, SecurityProtocol>) -> Result<String, Conflict> {
    let (protocol, protocol_given) = wanted.inter_broker_protocol;
    match wanted.inter_broker_name {
        Some(_) if protocol_given => Err(conflict(INTER_BROKER, "only one of it and security.inter.broker.protocol may be set")),
        Some(name) if protocols.contains_key(&name.to_ascii_uppercase()) => Ok(name.to_ascii_uppercase()),
        Some(name) => Err(conflict(INTER_BROKER, format!("{PROTOCOLS} has no entry for {name}"))),
        None => Ok(protocol.to_owned()),
    }
}

fn voters(entries: &[String]) -> Result<Vec<Voter>, Conflict> {
    let mut voters: Vec<Voter> = Vec::new();
    for entry in entries {
        let voter = entry.split_once('@').and_then(|(id, address)| {
            let (host, port) = host_and_port(address)?;
            (!host.is_empty()).then_some(Voter { id: id.trim().parse().ok()?, host: host.into(), port })
        });
        let voter = voter.ok_or_else(|| conflict(VOTERS, format!("{entry:?} is not id@host:port")))?;
        if voters.iter().any(|known| known.id == voter.id) {
            return Err(conflict(VOTERS, format!("node {} is there twice", voter.id)));
        }
        voters.push(voter);
    }
    Ok(voters)
}

fn quorum(
    wanted: &Wanted,
    voters: &[Voter],
    controller_names: &[String],
    controller_listeners: &[Endpoint],
    listeners: &[Endpoint],
) -> Result<(), Conflict> {
    let node = wanted.node_id;
    let listed = voters.iter().any(|voter| voter.id == node);
    if !wanted.is_controller {
        if voters.is_empty() && wanted.bootstrap_servers.is_empty() {
            return Err(conflict(VOTERS, "a broker without the controller role needs the addresses of the controllers"));
        }
        if listed {
            return Err(conflict(VOTERS, format!("node {node} is among the voters, but process.roles is broker only")));
        }
        if controller_names.is_empty() {
            return Err(conflict(CONTROLLERS, "a broker without the controller role needs the name of the controllers' listener"));
        }
        if let Some(own) = controller_listeners.first() {
            return Err(conflict(CONTROLLERS, format!("{own} is in {LISTENERS}, but process.roles is broker only")));
        }
        return Ok(());
    }
    if !voters.is_empty() && !listed {
        return Err(conflict(VOTERS, format!("node {node} has the controller role and must be among the voters")));
    }
    if let Some(missing) = controller_names.iter().find(|name| !controller_listeners.iter().any(|e| e.name == **name)) {
        return Err(conflict(CONTROLLERS, format!("{missing} has no address in {LISTENERS}")));
    }
    if voters.len() > 1 && controller_listeners.is_empty() {
        return Err(conflict(CONTROLLERS, "other voters could not reach this one: name a listener for the quorum"));
    }
    if !wanted.is_broker && !listeners.is_empty() {
        return Err(conflict(LISTENERS, format!("{} is for brokers, but process.roles is controller only", names(listeners))));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! What a scrape shows, seen from outside: the golden list of families, counters born at 0, the switches, and what sums are made of.

use std::collections::BTreeMap;
use std::path::Path;

use understudy_metrics::{
    Detail, ElectionReason, ElectionType, Families, Family, Gauge, Kind, MAX_SERIES, Profiles, Registry, Sink, Spent,
};

fn families() -> Families {
    Families::new(&Registry::new())
}

fn scrape(families: &Families) -> BTreeMap<String, f64> {
    let text = families.render(Profiles::default(), 0);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap())).unwrap()).collect()
}

/// Every handle a node makes at start, so that every family that does not depend on the cluster's state has a sample.
fn started() -> Families {
    let families = families();
    families.api("Produce", 0..=2, &["NOT_LEADER_OR_FOLLOWER"]).spent(Spent::default());
    families.actor("partition");
    families.purgatory("Produce");
    families.connections_refused("max.connections");
    families.processor_connections("PLAINTEXT", 0);
    families.log_dir_offline("/data");
    families.bound("max.connections", 7);
    families.raft_state("leader");
    families.identity(1, "cluster");
    families
}

#[test]
fn names_types_labels_and_help_are_the_golden_ones() {
    let mut text = String::new();
    for family in Family::ALL {
        let kind = if family.kind() == Kind::Counter { "counter" } else { "gauge" };
        text += &format!("{} {kind} {{{}}} {}\n", family.name(), family.labels().join(","), family.help());
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/families.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(text, expected, "families changed: if that is meant, run UPDATE_GOLDEN=1 cargo test -p understudy-metrics");
}

#[test]
fn the_table_follows_the_rules_of_names() {
    for family in Family::ALL {
        let name = family.name();
        assert_eq!(name.ends_with("_total"), family.kind() == Kind::Counter, "{name}: counters, and only they, end in _total");
        assert!(["kafka_", "understudy_", "process_"].iter().any(|prefix| name.starts_with(prefix)), "{name}: prefix of its profile");
        assert!(!name.ends_with("persec"), "{name}: two spellings of one counter must not meet");
        for label in family.labels() {
            assert!(!["client", "client_id", "clientId", "principal", "user", "offset"].contains(label), "{name}: unbounded label {label}");
        }
    }
}

#[test]
fn every_counter_is_there_at_0_before_anything_happens() {
    let shown = scrape(&started());
    // Not at 0: the one request timed in `started`, and the CPU that the process has used already.
    let moved = |name: &str| name.starts_with("process_") || name.starts_with("kafka_network_") && name.contains("timems_count");
    for family in Family::ALL.iter().filter(|family| family.kind() == Kind::Counter && !moved(family.name())) {
        let series: Vec<_> = shown.iter().filter(|(name, _)| name.split('{').next() == Some(family.name())).collect();
        assert!(!series.is_empty(), "{} has no series", family.name());
        assert!(series.iter().all(|(_, value)| **value == 0.0), "{} is not at 0: {series:?}", family.name());
    }
    for kind in ["clean", "elr", "unclean", "designated"] {
        assert!(shown.contains_key(&format!("understudy_elections_total{{type=\"{kind}\",reason=\"fenced\"}}")), "{kind}: {shown:?}");
    }
    assert_eq!(shown["kafka_network_requestmetrics_requests_total{request=\"Produce\",version=\"2\"}"], 0.0);
    assert_eq!(shown["understudy_requests_total{api=\"Produce\",error=\"NOT_LEADER_OR_FOLLOWER\"}"], 0.0);
}

#[test]
fn two_nodes_in_a_process_do_not_see_each_other() {
    let (one, two) = (families(), families());
    one.replicas.isr_shrinks.inc();
    assert_eq!(scrape(&one)["kafka_server_replicamanager_isrshrinks_total"], 1.0);
    assert_eq!(scrape(&two)["kafka_server_replicamanager_isrshrinks_total"], 0.0);
}

#[test]
fn profiles_filter_names() {
    let families = started();
    let kafka = families.render(Profiles::parse(["kafka"]).unwrap(), 0);
    assert!(kafka.contains("kafka_server_replicamanager_leadercount 0\n") && !kafka.contains("understudy_"), "{kafka}");
    let native = families.render(Profiles::parse(["native"]).unwrap(), 0);
    assert!(native.contains("understudy_connections 0\n") && !native.contains("kafka_"), "{native}");
    assert!(native.contains("process_resident_memory_bytes "), "{native}");
}

#[test]
fn the_broker_wide_series_outlives_its_topics() {
    let families = families();
    families.topics.topic("gone").bytes_in.add(5);
    families.topics.topic("kept").bytes_in.add(7);
    families.topics.topic("kept").bytes_in.add(1);
    families.topics.no_topic.bytes_in.add(100);
    families.topics.remove("gone");
    families.topics.remove("never there");
    let shown = scrape(&families);
    assert_eq!(shown["kafka_server_brokertopicmetrics_bytesin_total"], 113.0);
    assert_eq!(shown["kafka_server_brokertopicmetrics_bytesin_total{topic=\"kept\"}"], 8.0);
    assert!(!shown.contains_key("kafka_server_brokertopicmetrics_bytesin_total{topic=\"gone\"}"));
}

#[test]
fn replicas_are_counted_by_what_their_gauges_say() {
    // leading, isr, replicas, min.insync.replicas -> under replicated, under min ISR, at min ISR
    let table = [
        (1, 3, 3, 2, [0, 0, 0]),
        (1, 2, 3, 2, [1, 0, 1]),
        (1, 1, 3, 2, [1, 1, 0]),
        (0, 1, 3, 2, [0, 0, 0]),
        // A minimum beyond the replication factor counts as the replication factor.
        (1, 1, 1, 2, [0, 0, 1]),
    ];
    for (leading, in_sync, replicas, min, expected) in table {
        let families = families();
        let partition = families.partitions.host("t", 4);
        partition.leading.set(leading);
        partition.in_sync.set(in_sync);
        partition.replicas.set(replicas);
        partition.min_in_sync.set(min);
        let shown = scrape(&families);
        let names = ["underreplicatedpartitions", "underminisrpartitioncount", "atminisrpartitioncount"];
        let counted = names.map(|name| shown[&format!("kafka_server_replicamanager_{name}")] as i64);
        assert_eq!(counted, expected, "{leading} {in_sync} {replicas} {min}");
        let per_partition = ["underreplicated", "underminisr", "atminisr"]
            .map(|name| shown[&format!("kafka_cluster_partition_{name}{{topic=\"t\",partition=\"4\"}}")] as i64);
        assert_eq!(per_partition, expected, "{leading} {in_sync} {replicas} {min}");
        drop(partition);
        let after = scrape(&families);
        assert_eq!(after["kafka_server_replicamanager_partitioncount"], 0.0, "a replica that is not hosted any more is not shown");
        assert!(!after.keys().any(|name| name.starts_with("kafka_log_log_")));
    }
}

#[test]
fn detail_switches_what_is_shown_of_each_partition() {
    let families = families();
    let hosted: Vec<_> = (0..3).map(|partition| families.partitions.host("t", partition)).collect();
    hosted.iter().for_each(|partition| partition.log_size.set(10));
    hosted[1].leading.set(1);
    hosted[1].in_sync.set(1);
    hosted[1].replicas.set(3);
    hosted[1].min_in_sync.set(2);
    let shown = |detail| {
        families.partitions.set_detail(detail);
        let all = scrape(&families);
        all.into_iter().filter(|(name, _)| name.contains("topic=\"t\"")).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(shown(Detail::Auto).len(), 30, "few partitions are shown in full");
    assert_eq!(shown(Detail::Full).len(), 30);
    assert_eq!(shown(Detail::Off).len(), 0);
    let unhealthy = shown(Detail::Unhealthy);
    assert_eq!(unhealthy["kafka_log_log_size{topic=\"t\"}"], 30.0);
    assert_eq!(unhealthy["kafka_cluster_partition_underreplicated{topic=\"t\",partition=\"1\"}"], 1.0);
    assert_eq!(unhealthy["kafka_cluster_partition_underminisr{topic=\"t\",partition=\"1\"}"], 1.0);
    assert_eq!(unhealthy.len(), 3, "{unhealthy:?}");
    let _many: Vec<_> = (0..2_000).map(|partition| families.partitions.host("many", partition)).collect();
    assert_eq!(shown(Detail::Auto).len(), 3, "many partitions are not");
}

#[test]
fn unclean_and_designated_elections_are_kafkas_unclean_ones() {
    let families = families();
    families.elections.elected(ElectionType::Clean, ElectionReason::Fenced, 10);
    families.elections.elected(ElectionType::Unclean, ElectionReason::UncleanRecovery, 2);
    families.elections.elected(ElectionType::Designated, ElectionReason::Manual, 1);
    let shown = scrape(&families);
    assert_eq!(shown["kafka_controller_controllerstats_uncleanleaderelections_total"], 3.0);
    assert_eq!(shown["understudy_elections_total{type=\"clean\",reason=\"fenced\"}"], 10.0);
}

#[test]
fn a_request_is_counted_by_version_error_and_phase() {
    let families = families();
    let fetch = families.api("Fetch", 4..=18, &[]);
    [12, 12, 3, 19, i16::MIN].into_iter().for_each(|version| fetch.request(version));
    fetch.none();
    fetch.error("UNKNOWN_TOPIC_ID");
    fetch.error("UNKNOWN_TOPIC_ID");
    fetch.spent(Spent { total_us: 5_000, local_us: 100, remote_us: 4_800, send_us: 100 });
    assert!(std::sync::Arc::ptr_eq(&fetch, &families.api("Fetch", 0..=0, &[])));
    let shown = scrape(&families);
    assert_eq!(shown["kafka_network_requestmetrics_requests_total{request=\"Fetch\",version=\"12\"}"], 2.0);
    assert_eq!(shown.keys().filter(|name| name.starts_with("kafka_network_requestmetrics_requests_total")).count(), 15);
    assert_eq!(shown["kafka_network_requestmetrics_errors_total{request=\"Fetch\",error=\"NONE\"}"], 1.0);
    assert_eq!(shown["kafka_network_requestmetrics_errors_total{request=\"Fetch\",error=\"UNKNOWN_TOPIC_ID\"}"], 2.0);
    assert_eq!(shown["kafka_network_requestmetrics_totaltimems_count_total{request=\"Fetch\"}"], 1.0);
    let p99 = shown["kafka_network_requestmetrics_totaltimems{request=\"Fetch\",quantile=\"0.99\"}"];
    assert!((4.6..5.7).contains(&p99), "{p99}");
}

#[test]
fn an_actor_is_seen_to_die_and_to_come_back() {
    let families = families();
    let partition = families.actor("partition");
    partition.died(true);
    partition.died(false);
    partition.restarts.inc();
    partition.mailbox_depth.add(3);
    partition.mailbox_depth.dec();
    let shown = scrape(&families);
    assert_eq!(partition.deaths(), 2);
    assert_eq!(shown["understudy_actor_deaths_total{actor=\"partition\",panicked=\"true\"}"], 1.0);
    assert_eq!(shown["understudy_actor_restarts_total{actor=\"partition\"}"], 1.0);
    assert_eq!(shown["understudy_actor_mailbox_depth{actor=\"partition\"}"], 2.0);
}

#[test]
fn sources_are_asked_at_each_scrape_and_say_what_is_absent() {
    let families = families();
    let active = std::sync::Arc::new(Gauge::default());
    let seen = active.clone();
    families.add_source(move |out: &mut Sink| {
        out.put(Family::ActiveControllerCount, &[], seen.get() as f64);
        if seen.get() == 1 {
            out.put(Family::GlobalTopicCount, &[], 5.0);
        }
    });
    assert!(!scrape(&families).contains_key("kafka_controller_kafkacontroller_globaltopiccount"));
    active.set(1);
    assert_eq!(scrape(&families)["kafka_controller_kafkacontroller_globaltopiccount"], 5.0);
}

#[test]
fn too_many_series_are_dropped_and_counted() {
    let families = families();
    families.add_source(|out: &mut Sink| {
        (0..MAX_SERIES).for_each(|n| out.put(Family::LogSize, &[&n.to_string(), "0"], 1.0));
    });
    let shown = scrape(&families);
    assert!(shown.len() <= MAX_SERIES + 200, "{}", shown.len());
    let dropped = shown["understudy_metrics_series_dropped_total"] as usize;
    let topics = shown.keys().filter(|name| name.starts_with("kafka_log_log_size")).count();
    assert!(dropped > 0 && topics + dropped == MAX_SERIES, "{topics} shown, {dropped} dropped");
    assert!(shown.contains_key("kafka_server_replicamanager_leadercount"), "series that are few are never dropped");
}

#[test]
fn label_values_are_escaped() {
    let families = families();
    families.log_dir_offline("/a\"b\\c\nd").set(1);
    let text = families.render(Profiles::default(), 0);
    assert!(text.contains("kafka_log_logmanager_logdirectoryoffline{logDirectory=\"/a\\\"b\\\\c\\nd\"} 1\n"), "{text}");
}

//! Brokers inside this process: two do not see each other, and what one wrote is there when it comes back.

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::path::Path;
use understudy::config::Config;
use understudy::config::file::from_overrides;
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Conn, eventually};

fn config(dir: &Path) -> Config {
    let dir = dir.display();
    let settings = ["listeners=PLAINTEXT://127.0.0.1:0", "http.listen=127.0.0.1:0", &format!("log.dirs={dir}")].map(str::to_owned);
    Config::load(from_overrides(&settings).expect("settings of the right form")).expect("a valid configuration")
}

fn ask(address: &str, create: bool) -> MetadataResponse {
    let topic = MetadataRequestTopic::default().with_name(Some(TopicName(StrBytes::from_static_str("t"))));
    Conn::open(address).call(9, &MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(create))
}

#[test]
fn brokers_of_one_process_are_apart_and_keep_what_they_have() {
    let (one, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let first = understudy::spawn(config(one.path())).expect("a broker");
    let second = understudy::spawn(config(other.path())).expect("another broker");
    let taken = understudy::spawn(config(one.path())).err().expect("the directory is locked");
    assert!(taken.contains(&one.path().display().to_string()), "{taken}");

    ask(&first.kafka, true);
    eventually(SOON, "the topic", || (ask(&first.kafka, false).topics[0].error_code == 0).then_some(()));
    assert_eq!(ask(&second.kafka, false).topics[0].error_code, 3, "nobody made it there");
    assert_ne!(ask(&first.kafka, false).cluster_id, ask(&second.kafka, false).cluster_id);
    assert!(first.stop() && second.stop());

    let again = understudy::spawn(config(one.path())).expect("the first broker again");
    let topic = &ask(&again.kafka, false).topics[0];
    assert_eq!((topic.error_code, topic.partitions.len()), (0, 1));
    assert!(again.stop());
}

//! The README's table of API keys says what the broker answers. `UPDATE_GOLDEN=1` rewrites it between its marks.

use std::path::Path;

use kafka_protocol::messages::{ApiKey, ApiVersionsRequest};
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, golden};

const FROM: &str = "<!-- api keys: made by protocol-tests/tests/readme.rs -->\n";
const TO: &str = "<!-- end of api keys -->";

#[test]
fn the_readme_lists_what_api_versions_answers() {
    let broker = Broker::spawn(BrokerOptions::default());
    let answer = Conn::open(broker.bootstrap()).call(0, &ApiVersionsRequest::default());
    let mut keys: Vec<_> = answer.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect();
    keys.sort_unstable();
    let mut table = String::from("| API | key | versions |\n| --- | --- | --- |\n");
    for (key, min, max) in keys {
        let name = ApiKey::try_from(key).map_or_else(|()| "?".to_owned(), |known| format!("{known:?}"));
        let versions = if min == max { min.to_string() } else { format!("{min}-{max}") };
        table += &format!("| {name} | {key} | {versions} |\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(&path).expect("README.md");
    let start = readme.find(FROM).expect("the mark before the table") + FROM.len();
    let end = start + readme[start..].find(TO).expect("the mark after the table");
    if golden::updating() {
        std::fs::write(&path, [&readme[..start], &table, &readme[end..]].concat()).expect("README.md");
        return;
    }
    assert_eq!(
        &readme[start..end],
        table,
        "the README's table of API keys: UPDATE_GOLDEN=1 cargo test -p understudy-protocol-tests --test readme"
    );
}

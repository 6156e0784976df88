//! Feature levels and producer ids: the cluster-wide numbers that only go forward.

use super::Controller;
use super::draft::Sink;
use super::leaders::{ELR_VERSION, MIN_ISR};
use super::records::{BrokerEpoch, Config, Feature, FeatureLevel, ProducerIds, Record, ResourceType};
use super::request::{FeatureUpdate, ProducerIdBlock, Refusal, UpgradeType, Why};
use crate::core::types::BrokerId;

/// The feature that every log starts with: readers learn from it how to read the rest.
pub const METADATA_VERSION: &str = "metadata.version";
/// The quorum's own feature. It lives in control records; a level of it in a data record is an old mistake (KAFKA-18979).
pub(super) const KRAFT_VERSION: &str = "kraft.version";
/// Producer ids in a block.
const BLOCK_SIZE: i32 = 1000;

/// The `metadata.version` whose records can carry eligible leader replicas.
const ELR_NEEDS: i16 = 23;

/// The records that a new cluster's log begins with, as one append: `metadata.version`, then the other features that are on, by name. With
/// eligible leader replicas, the cluster has one `min.insync.replicas`, and it is a record, too.
pub fn bootstrap(metadata_version: i16, others: &[(&str, i16)], min_insync_replicas: usize) -> Vec<Record> {
    let mut others: Vec<(&str, i16)> = others.iter().copied().filter(|(name, level)| *level > 0 && *name != KRAFT_VERSION).collect();
    others.sort();
    let with_elr = others.iter().any(|(name, _)| *name == ELR_VERSION);
    let levels = std::iter::once((METADATA_VERSION, metadata_version)).chain(others);
    let elr = with_elr.then(|| min_isr_of(String::new(), Some(min_insync_replicas.to_string())));
    levels.map(|(name, level)| Record::FeatureLevel(FeatureLevel { name: name.into(), level })).chain(elr).collect()
}

fn min_isr_of(broker: String, value: Option<String>) -> Record {
    Record::Config(Config { resource_type: ResourceType::Broker, resource_name: broker, name: MIN_ISR.into(), value })
}

impl Controller {
    pub(super) fn update_features(&self, updates: Vec<FeatureUpdate>, mut sink: Sink<'_>) -> Result<(), Refusal> {
        let mut records = Vec::new();
        for update in &updates {
            records.extend(self.update_feature(update).map_err(|why| {
                let message = format!("Invalid update version {} for feature {}. {why}", update.level, update.name);
                let prefix = "The update failed for all features since the following feature had an error";
                Refusal::new(Why::InvalidUpdateVersion, format!("{prefix}: {message}"))
            })?);
        }
        if updates.iter().any(|update| update.name == ELR_VERSION && update.level > 0) {
            sink.extend(self.one_min_isr());
        }
        sink.extend(records);
        Ok(())
    }

    /// Eligible leader replicas rest on a `min.insync.replicas` that every broker agrees on.
    fn one_min_isr(&self) -> Vec<Record> {
        let set = |configs: &super::Configs| configs.contains_key(MIN_ISR);
        let of_all = self.image.configs(ResourceType::Broker, "").is_some_and(set);
        let cluster = (!of_all).then(|| min_isr_of(String::new(), Some(self.settings.min_insync_replicas.to_string())));
        let own = self.image.configured(ResourceType::Broker).filter(|(name, configs)| !name.is_empty() && set(configs));
        cluster.into_iter().chain(own.map(|(name, _)| min_isr_of(name.to_string(), None))).collect()
    }

    fn update_feature(&self, update: &FeatureUpdate) -> Result<Option<Record>, String> {
        let FeatureUpdate { name, level, upgrade } = update;
        if *level < 0 {
            return Err("A feature version cannot be less than 0.".into());
        }
        supports("Local controller", &self.settings.features, name, *level)?;
        for broker in self.image.brokers() {
            supports(&format!("Broker {}", broker.id.0), &broker.features, name, *level)?;
        }
        for controller in self.image.controllers() {
            supports(&format!("Controller {}", controller.id.0), &controller.features, name, *level)?;
        }
        let present = self.image.feature(name);
        if *level < present && *upgrade == UpgradeType::Upgrade {
            let message =
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.";
            return Err(message.into());
        }
        if *level > present && *upgrade != UpgradeType::Upgrade {
            return Err("Can't downgrade to a newer version.".into());
        }
        if name == KRAFT_VERSION {
            return Ok(None);
        }
        if name == ELR_VERSION && *level > 0 && self.image.feature(METADATA_VERSION) < ELR_NEEDS {
            return Err(format!("Could not set feature {name} to {level} because it depends on {METADATA_VERSION} level {ELR_NEEDS}"));
        }
        if name == METADATA_VERSION && *level < present {
            return Err(match upgrade {
                UpgradeType::UnsafeDowngrade => "Unsafe metadata downgrade is not supported in this version.",
                _ => "Refusing to perform the requested downgrade because it might delete metadata information.",
            }
            .into());
        }
        Ok(Some(Record::FeatureLevel(FeatureLevel { name: name.clone(), level: *level })))
    }

    pub(super) fn allocate_producer_ids(
        &self,
        broker: BrokerId,
        broker_epoch: BrokerEpoch,
        records: &mut Vec<Record>,
    ) -> Result<ProducerIdBlock, Refusal> {
        self.check_broker_epoch(broker, broker_epoch)?;
        let first = self.image.next_producer_id();
        let Some(next_producer_id) = first.checked_add(i64::from(BLOCK_SIZE)) else {
            return Err(Refusal::new(Why::ProducerIdsExhausted, "All producer ids that fit 63 bits have been given away."));
        };
        records.push(Record::ProducerIds(ProducerIds { broker_id: broker, broker_epoch, next_producer_id }));
        Ok(ProducerIdBlock { first, count: BLOCK_SIZE })
    }
}

/// Whether a node with these features can run at that level; a feature it does not name it can only run without.
fn supports(who: &str, features: &[Feature], name: &str, level: i16) -> Result<(), String> {
    match features.iter().find(|feature| feature.name == name) {
        Some(feature) if (feature.min..=feature.max).contains(&level) => Ok(()),
        Some(feature) if feature.max > 0 => Err(format!("{who} only supports versions {}-{}", feature.min, feature.max)),
        None if level == 0 => Ok(()),
        _ => Err(format!("{who} does not support this feature.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_begins_with_its_metadata_version() {
        let level = |name: &str, level| Record::FeatureLevel(FeatureLevel { name: name.into(), level });
        let records = bootstrap(30, &[("transaction.version", 2), ("group.version", 1), ("share.version", 0), ("kraft.version", 1)], 2);
        assert_eq!(records, [level("metadata.version", 30), level("group.version", 1), level("transaction.version", 2)]);
        let with_elr = bootstrap(30, &[("eligible.leader.replicas.version", 1)], 2);
        assert_eq!(with_elr[1..], [level("eligible.leader.replicas.version", 1), min_isr_of(String::new(), Some("2".into()))]);
    }
}

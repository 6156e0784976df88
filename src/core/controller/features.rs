//! Feature levels and producer ids: the cluster-wide numbers that only go forward.

use super::records::{BrokerEpoch, Feature, FeatureLevel, ProducerIds, Record};
use super::request::{FeatureUpdate, ProducerIdBlock, Refusal, UpgradeType, Why};
use super::{Controller, Sink};
use crate::core::types::BrokerId;

/// The feature that every log starts with: readers learn from it how to read the rest.
pub const METADATA_VERSION: &str = "metadata.version";
/// The quorum's own feature. It lives in control records; a level of it in a data record is an old mistake (KAFKA-18979).
pub(super) const KRAFT_VERSION: &str = "kraft.version";
/// Producer ids in a block.
const BLOCK_SIZE: i32 = 1000;

/// The records that a new cluster's log begins with, as one append: `metadata.version`, then the other features that are on, by name.
pub fn bootstrap(metadata_version: i16, others: &[(&str, i16)]) -> Vec<Record> {
    let mut others: Vec<(&str, i16)> = others.iter().copied().filter(|(name, level)| *level > 0 && *name != KRAFT_VERSION).collect();
    others.sort();
    let levels = std::iter::once((METADATA_VERSION, metadata_version)).chain(others);
    levels.map(|(name, level)| Record::FeatureLevel(FeatureLevel { name: name.into(), level })).collect()
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
        sink.extend(records);
        Ok(())
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
        let records = bootstrap(30, &[("transaction.version", 2), ("group.version", 1), ("share.version", 0), ("kraft.version", 1)]);
        assert_eq!(records, [level("metadata.version", 30), level("group.version", 1), level("transaction.version", 2)]);
    }
}

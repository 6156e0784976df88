//! Which names a scrape asks for (`/metrics?profile=kafka&profile=native`). The Prometheus job decides, so that changing one's mind needs no
//! restart. Two spellings of one counter must never meet in a scrape: alerts that prefer the never-decreasing one then fire for ever.

/// The names one scrape shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profiles {
    /// Family A: Kafka's MBeans as the Prometheus JMX exporter's examples and Strimzi spell them.
    pub kafka: bool,
    /// Ours: `understudy_*`, and `process_*`.
    pub native: bool,
    /// Topics and groups by the names of kafka_exporter. Groups name themselves, so there may be any number: only if asked for.
    pub kafka_exporter: bool,
}

/// The scrape asked for a profile that does not exist; the text says which do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProfile(pub String);

impl std::fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "unknown metrics profile {:?}: use profile=kafka, profile=native (both are the default) or profile=kafka_exporter",
            self.0
        )
    }
}

impl std::error::Error for UnknownProfile {}

impl Default for Profiles {
    fn default() -> Profiles {
        Profiles { kafka: true, native: true, kafka_exporter: false }
    }
}

impl Profiles {
    /// From the values of the query parameter; none of them means the default.
    ///
    /// # Errors
    /// A name that is not a profile.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Profiles, UnknownProfile> {
        let mut asked = Profiles { kafka: false, native: false, kafka_exporter: false };
        for name in names {
            match name {
                "kafka" => asked.kafka = true,
                "native" => asked.native = true,
                "kafka_exporter" => asked.kafka_exporter = true,
                other => return Err(UnknownProfile(other.chars().take(64).collect())),
            }
        }
        if asked.kafka || asked.native || asked.kafka_exporter { Ok(asked) } else { Ok(Profiles::default()) }
    }

    /// Whether a family of this name is part of the scrape.
    pub fn shows(self, name: &str) -> bool {
        let of_exporter = ["kafka_brokers", "kafka_topic_", "kafka_consumergroup_"].iter().any(|prefix| name.starts_with(prefix));
        match () {
            () if of_exporter => self.kafka_exporter,
            () if name.starts_with("kafka_") => self.kafka,
            () => self.native,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_choose_names() {
        let (kafka, native) = ("kafka_server_kafkaserver_brokerstate", "understudy_connections");
        let table: [(&[&str], bool, bool); 4] =
            [(&[], true, true), (&["kafka"], true, false), (&["native"], false, true), (&["native", "kafka"], true, true)];
        for (asked, shows_kafka, shows_native) in table {
            let profiles = Profiles::parse(asked.iter().copied()).unwrap();
            assert_eq!((profiles.shows(kafka), profiles.shows(native)), (shows_kafka, shows_native), "{asked:?}");
            assert!(!profiles.shows("kafka_consumergroup_lag"), "{asked:?}");
        }
        let exporter = Profiles::parse(["kafka_exporter"]).unwrap();
        assert!(exporter.shows("kafka_brokers") && exporter.shows("kafka_topic_partitions") && exporter.shows("kafka_consumergroup_lag"));
        assert!(!exporter.shows(kafka) && !exporter.shows(native));
        assert!(Profiles::parse(["kafka", "jmx"]).unwrap_err().to_string().contains("\"jmx\""));
    }
}

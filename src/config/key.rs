//! What is known about one key, and the macro that makes a table of keys into a struct with typed fields.

use super::value::{Kind, Rule, Value};

/// When a broker key may change (KIP-226).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Only in the configuration a broker starts with.
    ReadOnly,
    /// At run time, for one broker.
    PerBroker,
    /// At run time, for one broker or for all.
    ClusterWide,
}

impl Update {
    /// Kafka's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Update::ReadOnly => "read-only",
            Update::PerBroker => "per-broker",
            Update::ClusterWide => "cluster-wide",
        }
    }
}

/// Whether this broker does anything with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Acted on.
    Now,
    /// Apache Kafka knows it; here it is read, checked and described, and nothing more.
    Later,
}

/// One broker key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Kafka's name.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// Text of its default; `None` if it has none.
    pub default: Option<&'static str>,
    /// Values that it allows.
    pub rule: Rule,
    /// When it may change.
    pub update: Update,
    /// Whether it is acted on.
    pub status: Status,
    /// Left out of DescribeConfigs unless it was given (Kafka's internal keys).
    pub hidden: bool,
    /// What it is for.
    pub doc: &'static str,
}

impl Key {
    /// Whether the key is this broker's own, unknown to Apache Kafka.
    pub fn is_ours(&self) -> bool {
        self.name.starts_with("understudy.") || matches!(self.name, "http.listen" | "log.format")
    }
}

/// One topic key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopicKey {
    /// Kafka's name.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// Text of its default; `None` if it has none.
    pub default: Option<&'static str>,
    /// Values that it allows.
    pub rule: Rule,
    /// Broker keys it falls back to, the most specific first; the first one is the "synonym" that Kafka describes.
    pub synonyms: &'static [&'static str],
    /// Left out of DescribeConfigs unless it was given (Kafka's internal keys).
    pub hidden: bool,
    /// What it is for.
    pub doc: &'static str,
}

/// A Rust type that a row of a table may have.
pub trait Typed: Sized {
    /// Kafka's type of it.
    const KIND: Kind;
    /// From a value that was read as `KIND` and checked by the row's rule; `None` if the row's type and rule do not fit each other.
    fn from_value(value: Value) -> Option<Self>;
    /// What a key without value and without default is: nothing, unless the type says so.
    fn absent() -> Option<Self> {
        None
    }
}

macro_rules! typed {
    ($($ty:ty: $kind:ident, $pattern:pat => $some:expr;)*) => {$(
        impl Typed for $ty {
            const KIND: Kind = Kind::$kind;
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    $pattern => $some,
                    _ => None,
                }
            }
        }
    )*};
}

typed! {
    bool: Boolean, Value::Bool(value) => Some(value);
    i16: Short, Value::Number(value) => value.try_into().ok();
    i32: Int, Value::Number(value) => value.try_into().ok();
    i64: Long, Value::Number(value) => Some(value);
    f64: Double, Value::Double(value) => Some(value);
    String: String, Value::Text(value) => Some(value);
    Vec<String>: List, Value::List(value) => Some(value);
}

/// A type whose values are a few words, each with its name in the file.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])* $variant,)* }

        impl $name {
            /// The word for it in configuration.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl Typed for $name {
            const KIND: Kind = Kind::String;
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Text(text) => match text.as_str() { $($text => Some(Self::$variant),)* _ => None },
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// Codec of stored batches.
    CompressionType {
        /// As the producer chose.
        Producer = "producer",
        /// None.
        Uncompressed = "uncompressed",
        /// gzip.
        Gzip = "gzip",
        /// snappy.
        Snappy = "snappy",
        /// lz4.
        Lz4 = "lz4",
        /// zstd.
        Zstd = "zstd",
    }
}

words! {
    /// Whose clock a record carries.
    TimestampType {
        /// The producer's.
        CreateTime = "CreateTime",
        /// The broker's.
        LogAppendTime = "LogAppendTime",
    }
}

words! {
    /// Look of log lines.
    LogFormat {
        /// For people.
        Human = "human",
        /// One JSON object a line.
        Json = "json",
    }
}

words! {
    /// How much of a produced batch is checked.
    RecordValidation {
        /// Every record is walked.
        Full = "full",
        /// The batch header and its checksum only.
        Header = "header",
    }
}

/// What happens to old segments. Neither: they are kept for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Only the last record of each key is kept.
    pub compact: bool,
    /// They are deleted by age and size.
    pub delete: bool,
}

impl Typed for CleanupPolicy {
    const KIND: Kind = Kind::List;
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::List(words) => {
                let has = |word: &str| words.iter().any(|w| w == word);
                Some(CleanupPolicy { compact: has("compact"), delete: has("delete") })
            }
            _ => None,
        }
    }
}

impl<T: Typed> Typed for Option<T> {
    const KIND: Kind = T::KIND;
    fn from_value(value: Value) -> Option<Self> {
        T::from_value(value).map(Some)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// `none`, or a text.
macro_rules! default_text {
    (none) => {
        None
    };
    ($text:literal) => {
        Some($text)
    };
}

pub(super) use default_text;

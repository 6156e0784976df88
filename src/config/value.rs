//! How a value is written and which values a key allows: Kafka's nine types, its rules, and the words of its refusals
//! (`ConfigDef`; clients and scripts match some of them). Knows no key.

use std::fmt;

/// Type of a key, as DescribeConfigs names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// Any text.
    String,
    /// 32 bits.
    Int,
    /// 16 bits.
    Short,
    /// 64 bits.
    Long,
    /// A fraction.
    Double,
    /// Texts between commas.
    List,
    /// Name of a Java class.
    Class,
    /// Text that is never shown.
    Password,
}

impl Kind {
    /// Number of the type in a DescribeConfigs answer (KIP-569); 0 there means unknown.
    pub fn id(self) -> i8 {
        match self {
            Kind::Boolean => 1,
            Kind::String => 2,
            Kind::Int => 3,
            Kind::Short => 4,
            Kind::Long => 5,
            Kind::Double => 6,
            Kind::List => 7,
            Kind::Class => 8,
            Kind::Password => 9,
        }
    }

    /// Kafka's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::String => "STRING",
            Kind::Int => "INT",
            Kind::Short => "SHORT",
            Kind::Long => "LONG",
            Kind::Double => "DOUBLE",
            Kind::List => "LIST",
            Kind::Class => "CLASS",
            Kind::Password => "PASSWORD",
        }
    }
}

/// Which values of its type a key allows. `Display` writes it as Kafka's documentation does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Every value.
    Any,
    /// A number not below.
    AtLeast(i64),
    /// A number in a range, both ends allowed.
    Between(i64, i64),
    /// A fraction in a range, both ends allowed.
    Fraction(f64, f64),
    /// -1, or 1 to 9.
    GzipLevel,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// A text that is not empty.
    NonEmpty,
    /// A text, possibly empty, but given.
    NonNull,
    /// A list without repetition and without empty entries.
    List,
    /// The same, and not empty.
    SomeList,
    /// A list of some of these.
    ListOf(&'static [&'static str]),
    /// The same, and not empty.
    SomeOf(&'static [&'static str]),
    /// `partition:broker` entries, or `*`.
    ThrottledReplicas,
    /// Network addresses; read where they are used.
    Addresses,
}

impl Rule {
    /// Whether repeated entries of a list are dropped, as Kafka does before it checks one of its list rules.
    fn drops_repeated(self) -> bool {
        matches!(self, Rule::List | Rule::SomeList | Rule::ListOf(_) | Rule::SomeOf(_))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Any | Rule::List | Rule::SomeList => Ok(()),
            Rule::AtLeast(min) => write!(f, "[{min},...]"),
            Rule::Between(min, max) => write!(f, "[{min},...,{max}]"),
            Rule::Fraction(min, max) => write!(f, "[{min},...,{max}]"),
            Rule::GzipLevel => f.write_str("[1,...,9] or -1"),
            Rule::OneOf(texts) | Rule::ListOf(texts) | Rule::SomeOf(texts) => write!(f, "[{}]", texts.join(", ")),
            Rule::OneOfAnyCase(texts) => write!(f, "(case insensitive) [{}]", texts.join(", ")),
            Rule::NonEmpty => f.write_str("non-empty string"),
            Rule::NonNull => f.write_str("non-null string"),
            Rule::ThrottledReplicas => f.write_str("[partitionId]:[brokerId],[partitionId]:[brokerId],..."),
            Rule::Addresses => f.write_str("non-empty list"),
        }
    }
}

/// A value that was read. `Display` writes the canonical text that Kafka shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a `Boolean`.
    Bool(bool),
    /// Of an `Int`, `Short` or `Long`.
    Number(i64),
    /// Of a `Double`.
    Double(f64),
    /// Of a `String`, `Class` or `Password`.
    Text(String),
    /// Of a `List`.
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Number(value) => value.fmt(f),
            Value::Double(value) => f.write_str(&java_double(*value)),
            Value::Text(text) => f.write_str(text),
            Value::List(entries) => f.write_str(&entries.join(",")),
        }
    }
}

/// Text of a fraction as Java prints it: `0.5`, `1.0`, `1.7976931348623157E308`.
fn java_double(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if size == 0.0 || (1e-3..1e7).contains(&size) {
        format!("{value:?}")
    } else {
        let text = format!("{value:E}");
        match text.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => text,
        }
    }
}

/// A value that a key refuses, in Kafka's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// The text cannot be read, or the value lies outside of the rule.
    #[error("Invalid value {value} for configuration {name}: {reason}")]
    Value {
        /// The key.
        name: String,
        /// The text as given.
        value: String,
        /// What would be right.
        reason: String,
    },
    /// A list refused as a whole.
    #[error("Configuration '{name}' {reason}")]
    List {
        /// The key.
        name: String,
        /// What would be right.
        reason: String,
    },
}

impl BadValue {
    /// What would be right.
    pub fn reason(&self) -> &str {
        match self {
            BadValue::Value { reason, .. } | BadValue::List { reason, .. } => reason,
        }
    }
}

/// Reads `text` as a value of `kind` and checks it against `rule`. Space around it is ignored.
pub fn read(name: &str, text: &str, kind: Kind, rule: Rule) -> Result<Value, BadValue> {
    let bad = |value: &str, reason: String| BadValue::Value { name: name.into(), value: value.into(), reason };
    let trimmed = text.trim();
    let not_a_number = || bad(text, format!("Not a number of type {}", kind.name()));
    let value = match kind {
        Kind::Boolean if trimmed.eq_ignore_ascii_case("true") => Value::Bool(true),
        Kind::Boolean if trimmed.eq_ignore_ascii_case("false") => Value::Bool(false),
        Kind::Boolean => return Err(bad(text, "Expected value to be either true or false".into())),
        Kind::Int => Value::Number(trimmed.parse::<i32>().map_err(|_| not_a_number())?.into()),
        Kind::Short => Value::Number(trimmed.parse::<i16>().map_err(|_| not_a_number())?.into()),
        Kind::Long => Value::Number(trimmed.parse().map_err(|_| not_a_number())?),
        Kind::Double => Value::Double(trimmed.parse().map_err(|_| not_a_number())?),
        Kind::String | Kind::Class | Kind::Password => Value::Text(trimmed.into()),
        Kind::List if trimmed.is_empty() => Value::List(Vec::new()),
        Kind::List => {
            let mut entries: Vec<String> = Vec::new();
            for entry in trimmed.split(',').map(str::trim) {
                if !rule.drops_repeated() || !entries.iter().any(|known| known == entry) {
                    entries.push(entry.into());
                }
            }
            Value::List(entries)
        }
    };
    check(name, &value, rule)?;
    Ok(value)
}

fn check(name: &str, value: &Value, rule: Rule) -> Result<(), BadValue> {
    let refuse = |value: &dyn fmt::Display, reason: String| Err(BadValue::Value { name: name.into(), value: value.to_string(), reason });
    let refuse_list = |reason: String| Err(BadValue::List { name: name.into(), reason });
    let number = match value {
        Value::Number(number) => *number as f64,
        Value::Double(number) => *number,
        _ => 0.0,
    };
    match (rule, value) {
        (Rule::AtLeast(min), _) | (Rule::Between(min, _), _) if number < min as f64 => {
            refuse(value, format!("Value must be at least {min}"))
        }
        (Rule::Between(_, max), _) if number > max as f64 => refuse(value, format!("Value must be no more than {max}")),
        (Rule::Fraction(min, _), _) if number < min => refuse(value, format!("Value must be at least {min}")),
        (Rule::Fraction(_, max), _) if number > max => refuse(value, format!("Value must be no more than {max}")),
        (Rule::GzipLevel, Value::Number(level)) if *level != -1 && !(1..=9).contains(level) => {
            refuse(level, "Value must be between 1 and 9 or equal to -1".into())
        }
        (Rule::OneOf(texts), Value::Text(text)) if !texts.contains(&text.as_str()) => {
            refuse(text, format!("String must be one of: {}", texts.join(", ")))
        }
        (Rule::OneOfAnyCase(texts), Value::Text(text)) if !texts.iter().any(|known| known.eq_ignore_ascii_case(text)) => {
            refuse(text, format!("String must be one of (case insensitive): {}", texts.join(", ")))
        }
        (Rule::NonEmpty, Value::Text(text)) if text.is_empty() => refuse(text, "String must be non-empty".into()),
        (Rule::SomeList, Value::List(entries)) if entries.is_empty() => {
            refuse_list("must not be empty. Valid values include: any non-empty value".into())
        }
        (Rule::SomeOf(texts), Value::List(entries)) if entries.is_empty() => {
            refuse_list(format!("must not be empty. Valid values include: [{}]", texts.join(", ")))
        }
        (Rule::List | Rule::SomeList | Rule::ListOf(_) | Rule::SomeOf(_), Value::List(entries)) => {
            for entry in entries {
                if entry.is_empty() {
                    return refuse_list("values must not be empty.".into());
                }
                if let Rule::ListOf(texts) | Rule::SomeOf(texts) = rule
                    && !texts.contains(&entry.as_str())
                {
                    return refuse(entry, format!("String must be one of: {}", texts.join(", ")));
                }
            }
            Ok(())
        }
        (Rule::ThrottledReplicas, Value::List(entries)) if !throttled_replicas(entries) => refuse(
            &format!("[{}]", entries.join(", ")),
            format!(
                "{name} must be the literal '*' or a list of replicas in the following format: \
                 [partitionId]:[brokerId],[partitionId]:[brokerId],..."
            ),
        ),
        _ => Ok(()),
    }
}

/// `*`, or only `partition:broker` entries (an empty entry is let through, as Kafka lets it).
fn throttled_replicas(entries: &[String]) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let pair = |entry: &String| entry.is_empty() || entry.split_once(':').is_some_and(|(p, b)| digits(p) && digits(b));
    entries.iter().all(pair) || entries.concat() == "*"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_or_message(text: &str, kind: Kind, rule: Rule) -> Result<String, String> {
        read("k", text, kind, rule).map(|value| value.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn values_read_and_print_as_kafka_does() {
        let codecs = Rule::ListOf(&["compact", "delete"]);
        for (text, kind, rule, expected) in [
            (" 5 ", Kind::Long, Rule::Any, Ok("5")),
            ("+5", Kind::Int, Rule::Any, Ok("5")),
            ("soon", Kind::Long, Rule::Any, Err("Invalid value soon for configuration k: Not a number of type LONG")),
            ("", Kind::Long, Rule::Any, Err("Invalid value  for configuration k: Not a number of type LONG")),
            ("99999999999", Kind::Int, Rule::Any, Err("Invalid value 99999999999 for configuration k: Not a number of type INT")),
            ("40000", Kind::Short, Rule::Any, Err("Invalid value 40000 for configuration k: Not a number of type SHORT")),
            ("-2", Kind::Long, Rule::AtLeast(-1), Err("Invalid value -2 for configuration k: Value must be at least -1")),
            ("30", Kind::Int, Rule::Between(1, 22), Err("Invalid value 30 for configuration k: Value must be no more than 22")),
            ("1.5", Kind::Double, Rule::Between(0, 1), Err("Invalid value 1.5 for configuration k: Value must be no more than 1")),
            ("1", Kind::Double, Rule::Between(0, 1), Ok("1.0")),
            ("1.7976931348623157E308", Kind::Double, Rule::Any, Ok("1.7976931348623157E308")),
            ("1e10", Kind::Double, Rule::Any, Ok("1.0E10")),
            ("0.6", Kind::Double, Rule::Fraction(0.0, 0.5), Err("Invalid value 0.6 for configuration k: Value must be no more than 0.5")),
            ("TRUE", Kind::Boolean, Rule::Any, Ok("true")),
            ("yes", Kind::Boolean, Rule::Any, Err("Invalid value yes for configuration k: Expected value to be either true or false")),
            ("0", Kind::Int, Rule::GzipLevel, Err("Invalid value 0 for configuration k: Value must be between 1 and 9 or equal to -1")),
            ("-1", Kind::Int, Rule::GzipLevel, Ok("-1")),
            ("compact, delete,compact", Kind::List, codecs, Ok("compact,delete")),
            ("", Kind::List, codecs, Ok("")),
            ("compact,", Kind::List, codecs, Err("Configuration 'k' values must not be empty.")),
            ("wrong", Kind::List, codecs, Err("Invalid value wrong for configuration k: String must be one of: compact, delete")),
            ("", Kind::List, Rule::SomeList, Err("Configuration 'k' must not be empty. Valid values include: any non-empty value")),
            ("a", Kind::String, Rule::OneOf(&["b", "c"]), Err("Invalid value a for configuration k: String must be one of: b, c")),
            ("B", Kind::String, Rule::OneOfAnyCase(&["b"]), Ok("B")),
            ("*", Kind::List, Rule::ThrottledReplicas, Ok("*")),
            ("0:1,1:2", Kind::List, Rule::ThrottledReplicas, Ok("0:1,1:2")),
            (
                "x",
                Kind::List,
                Rule::ThrottledReplicas,
                Err("Invalid value [x] for configuration k: k must be the literal '*' or a list of replicas in the following format: \
                     [partitionId]:[brokerId],[partitionId]:[brokerId],..."),
            ),
        ] {
            assert_eq!(read_or_message(text, kind, rule), expected.map(str::to_owned).map_err(str::to_owned), "{text:?} as {kind:?}");
        }
    }
}

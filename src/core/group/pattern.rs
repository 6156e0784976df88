//! The regular expression of a subscription: which topics a consumer wants by the shape of their names (KIP-848).
//!
//! Kafka documents RE2/J's syntax. The regex crate has the same but for details, which are [translated](translate); both run in time linear
//! to the name, whatever the expression says. It must match the whole name.

use regex::{Regex, RegexBuilder};

/// An expression has at most so many bytes. Kafka has no bound but a request's size.
pub const PATTERN_MAX: usize = 4_096;

/// Bytes that an expression may take when it is compiled: what a few hundred alternatives take, and far more than names need.
const COMPILED_MAX: usize = 1 << 20;

/// A regular expression over topic names.
#[derive(Debug, Clone)]
pub struct TopicPattern {
    regex: Regex,
}

/// It is no regular expression that the broker accepts: INVALID_REGULAR_EXPRESSION.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// No regular expression.
    #[error("`{pattern}` is not a valid regular expression: {why}")]
    Syntax {
        /// As sent.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// More than [`PATTERN_MAX`] bytes.
    #[error("the regular expression has {0} bytes; the broker takes {PATTERN_MAX} at most")]
    TooLong(usize),
    /// It stands for too many states, as with large counts of repetition.
    #[error("`{0}` is too large a regular expression")]
    TooLarge(String),
}

impl TopicPattern {
    /// Reads an expression.
    pub fn new(pattern: &str) -> Result<TopicPattern, BadPattern> {
        if pattern.len() > PATTERN_MAX {
            return Err(BadPattern::TooLong(pattern.len()));
        }
        let compile = |pattern: &str| RegexBuilder::new(pattern).size_limit(COMPILED_MAX).dfa_size_limit(COMPILED_MAX).build();
        let translated = translate(pattern);
        // By itself first, so that nothing in it closes the group that is put around it.
        let regex = compile(&translated).and_then(|_| compile(&format!(r"\A(?:{translated})\z")));
        let regex = regex.map_err(|e| match e {
            regex::Error::CompiledTooBig(_) => BadPattern::TooLarge(pattern.to_owned()),
            other => BadPattern::Syntax { pattern: pattern.to_owned(), why: other.to_string() },
        })?;
        Ok(TopicPattern { regex })
    }

    /// Whether it matches that name, all of it.
    pub fn matches(&self, topic: &str) -> bool {
        self.regex.is_match(topic)
    }
}

/// RE2/J's spelling in that of the regex crate: `\Q...\E` is literal text, classes such as `\d` are ASCII (which names are, and which is
/// much smaller), and within brackets `[`, `&` and `~` stand for themselves.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    // Within brackets, and whether a `]` would be the first there, which is a plain character.
    let mut class: Option<bool> = None;
    while let Some(c) = rest.chars().next() {
        let first = class;
        class = first.map(|_| false);
        rest = &rest[c.len_utf8()..];
        match (c, first) {
            ('\\', _) => {
                let escaped = rest.chars().next();
                rest = &rest[escaped.map_or(0, char::len_utf8)..];
                match escaped {
                    Some('Q') => {
                        let (quoted, after) = rest.split_once(r"\E").unwrap_or((rest, ""));
                        out += &regex::escape(quoted);
                        rest = after;
                    }
                    Some('d') => out += "[0-9]",
                    Some('D') => out += "[^0-9]",
                    Some('w') => out += "[0-9A-Za-z_]",
                    Some('W') => out += "[^0-9A-Za-z_]",
                    Some('s') => out += r"[\t\n\f\r ]",
                    Some('S') => out += r"[^\t\n\f\r ]",
                    Some('b') => out += r"(?-u:\b)",
                    Some('B') => out += r"(?-u:\B)",
                    Some(other) => out.extend(['\\', other]),
                    None => out.push('\\'),
                }
            }
            ('[', None) => {
                out.push('[');
                if let Some(after) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = after;
                }
                class = Some(true);
            }
            ('[', Some(_)) if rest.starts_with(':') => {
                let end = rest.find(":]").map_or(rest.len(), |end| end + 2);
                out.push('[');
                out += &rest[..end];
                rest = &rest[end..];
            }
            ('[' | '&' | '~', Some(_)) => out.extend(['\\', c]),
            (']', Some(false)) => {
                out.push(']');
                class = None;
            }
            (c, _) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> TopicPattern {
        TopicPattern::new(pattern).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_whole_name_must_match() {
        let table: [(&str, &[&str], &[&str]); 20] = [
            ("foo", &["foo"], &["foo1", "afoo", ""]),
            ("a|ab", &["a", "ab"], &["abc", "b"]),
            ("foo.*", &["foo", "foo-1"], &["a-foo"]),
            ("^foo$", &["foo"], &["foo\n"]),
            ("", &[""], &["a"]),
            ("(?i)foo", &["FOO"], &["bar"]),
            (r"\d+", &["12"], &["a", "\u{663}"]),
            (r"\w{1,249}", &["topic_1"], &["a.b"]),
            (r"\D\W\S", &["a.b"], &["1.b", "aab", "a. "]),
            (r"a\sb", &["a b"], &["a_b"]),
            (r"[\d_]+", &["1_2"], &["a"]),
            (r"[^\d]+", &["abc"], &["a1"]),
            (r"a\b-b", &["a-b"], &["a_b"]),
            (r"\Qa.b|c\E\d", &["a.b|c1"], &["axb1", "c1"]),
            (r"x\Q.*", &["x.*"], &["xyz"]),
            (r"[[a]+", &["[a"], &["b"]),
            (r"[a&&b~~c]+", &["a&b~c"], &["d"]),
            (r"[]x]+", &["]x"], &["y"]),
            (r"[^]x]+", &["y"], &["]"]),
            ("[[:digit:]x]+", &["1x"], &["y"]),
        ];
        for (pattern, yes, no) in table {
            let compiled = of(pattern);
            for name in yes {
                assert!(compiled.matches(name), "{pattern} and {name}");
            }
            for name in no {
                assert!(!compiled.matches(name), "{pattern} and {name}");
            }
        }
        assert!(of(r"[\]]+").matches("]]"), "an escaped bracket does not end the class");
        assert!(of(r"(?P<name>a)\pL").matches("ab"));
    }

    #[test]
    fn what_is_none_says_why() {
        for pattern in ["(", ")", "a)(b", "a)|(?:b", "*", "[", "a{2,1}", r"\", "(?=a)", r"(a)\1", "(?x)a #"] {
            let refused = TopicPattern::new(pattern).map(|_| ()).unwrap_err();
            assert!(matches!(&refused, BadPattern::Syntax { pattern: named, .. } if named == pattern), "{pattern}: {refused:?}");
        }
        assert_eq!(TopicPattern::new(&"a".repeat(4_097)).map(|_| ()), Err(BadPattern::TooLong(4_097)));
        let large = "((a{0,100}){0,100}){0,100}";
        assert_eq!(TopicPattern::new(large).map(|_| ()), Err(BadPattern::TooLarge(large.into())));
    }

    #[test]
    fn no_expression_takes_more_than_linear_time() {
        let name = "a".repeat(249);
        assert!(!of("(a*)*(a|aa)*(a+)+b").matches(&name));
        let many: Vec<String> = (0..300).map(|i| format!("topic-{i}")).collect();
        assert!(of(&many.join("|")).matches("topic-299"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(pattern in "\\PC{0,12}", pointed in r"[\[\]\\QE^:a&(|)*]{0,12}", name in "[a-z\\[\\]]{0,4}") {
            for pattern in [pattern, pointed] {
                let _ = TopicPattern::new(&pattern).map(|compiled| compiled.matches(&name));
            }
        }

        #[test]
        fn quoted_text_matches_itself_and_nothing_else(text in "[ -~]{1,20}", other in "[ -~]{1,20}") {
            proptest::prop_assume!(!text.contains("\\E") && !text.ends_with('\\'));
            let pattern = of(&format!(r"\Q{text}\E"));
            proptest::prop_assert!(pattern.matches(&text));
            proptest::prop_assert_eq!(pattern.matches(&other), text == other);
        }
    }
}

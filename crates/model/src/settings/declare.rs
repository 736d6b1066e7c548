//! The declaration of a setting: key, type, documentation, default, range, and what it goes with. The struct, its keys,
//! the values with their defaults, the ranges and the refusals of combinations are derived from it.

use std::fmt::Display;
use std::ops::{RangeInclusive, RangeToInclusive};

use serde::Serialize;

use crate::queue::Queue;
use crate::settings::Settings;
use crate::units::Size;

/// A part of a job that some settings need, and that others exclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The emulated link of a placement.
    Link,
    /// A server that wirelab does not start.
    Site,
    /// A page that a browser loads.
    Page,
}

/// Declares the struct of settings, each an `Option`, with their defaults in parentheses, and their rules. A setting
/// with a default has a method of its name for the value. A rule is a method of [`Setting`].
macro_rules! settings {
    (
        $(#[$outer:meta])*
        pub struct $name:ident {
            $($(#[$attribute:meta])* $key:ident: $type:ty $(= ($default:expr))? $(where $($rule:ident = $value:expr),+)?;)*
        }
    ) => {
        $(#[$outer])*
        pub struct $name {
            $(
                $(#[$attribute])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )*
        }

        impl $name {
            $($(
                #[doc = concat!("The setting `", stringify!($key), "`, or its default.")]
                #[must_use]
                pub fn $key(&self) -> $type {
                    $crate::settings::declare::or_default(self.$key.as_ref(), || $default)
                }
            )?)*

            /// All settings in the order of declaration.
            #[must_use]
            pub fn declared() -> Vec<Box<dyn Declared>> {
                vec![$(Box::new(
                    Setting::<$type>::new(stringify!($key), |settings| settings.$key.as_ref())
                        $(.default_value(&$default))?
                        $($(.$rule($value))+)?
                )),*]
            }
        }
    };
}

pub(crate) use settings;

pub(super) fn or_default<T: Clone>(value: Option<&T>, default: impl FnOnce() -> T) -> T {
    value.cloned().unwrap_or_else(default)
}

/// A declared setting.
pub trait Declared {
    fn key(&self) -> &'static str;

    /// Whether it has a value that some part may exclude.
    fn is_set(&self, settings: &Settings) -> bool;

    /// The part that it needs.
    fn needed_part(&self) -> Option<Part>;

    /// Whether it cannot be set beside this part.
    fn is_excluded_by(&self, part: Part) -> bool;

    /// The default as study files write it, if it depends on no other setting.
    fn default(&self) -> Option<&str>;

    /// The valid values in words: `from 1 to 500`.
    fn valid_values(&self) -> Option<String>;

    /// Why its value is out of range, or `None`.
    fn out_of_range(&self, settings: &Settings) -> Option<String>;
}

/// The declaration of a setting of type `T`.
pub(crate) struct Setting<T> {
    key: &'static str,
    get: fn(&Settings) -> Option<&T>,
    default: Option<String>,
    bounds: Option<Box<dyn Bounds<T>>>,
    needs: Option<Part>,
    excludes: &'static [Part],
    harmless: Option<T>,
}

impl<T> Setting<T> {
    pub(crate) const fn new(key: &'static str, get: fn(&Settings) -> Option<&T>) -> Self {
        Self { key, get, default: None, bounds: None, needs: None, excludes: &[], harmless: None }
    }

    /// The value of an absent key.
    pub(crate) fn default_value(self, value: &T) -> Self
    where
        T: Serialize,
    {
        let text = serde_json::to_value(value).ok().map(|value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        });
        Self { default: text, ..self }
    }

    /// Rule: the valid values.
    pub(crate) fn range(self, bounds: impl Bounds<T> + 'static) -> Self {
        Self { bounds: Some(Box::new(bounds)), ..self }
    }

    /// Rule: the part that it needs.
    pub(crate) fn needs(self, part: Part) -> Self {
        Self { needs: Some(part), ..self }
    }

    /// Rule: the parts beside which it cannot be set.
    pub(crate) fn excludes(self, parts: &'static [Part]) -> Self {
        Self { excludes: parts, ..self }
    }

    /// Rule: the value that every part allows.
    pub(crate) fn harmless(self, value: T) -> Self {
        Self { harmless: Some(value), ..self }
    }
}

impl<T: PartialEq> Declared for Setting<T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn is_set(&self, settings: &Settings) -> bool {
        (self.get)(settings).is_some_and(|value| self.harmless.as_ref() != Some(value))
    }

    fn needed_part(&self) -> Option<Part> {
        self.needs
    }

    fn is_excluded_by(&self, part: Part) -> bool {
        self.excludes.contains(&part)
    }

    fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    fn valid_values(&self) -> Option<String> {
        self.bounds.as_ref().map(|bounds| bounds.words())
    }

    fn out_of_range(&self, settings: &Settings) -> Option<String> {
        let bounds = self.bounds.as_ref()?;
        let value = bounds.outside((self.get)(settings)?)?;
        Some(format!("`{}` is {value}, but must be {}", self.key, bounds.words()))
    }
}

/// The valid values of a setting.
pub(crate) trait Bounds<T> {
    /// The value in words, if it is not valid.
    fn outside(&self, value: &T) -> Option<String>;

    fn words(&self) -> String;
}

impl<T: PartialOrd + Display> Bounds<T> for RangeInclusive<T> {
    fn outside(&self, value: &T) -> Option<String> {
        (!self.contains(value)).then(|| value.to_string())
    }

    fn words(&self) -> String {
        format!("from {} to {}", self.start(), self.end())
    }
}

impl<T: PartialOrd + Display> Bounds<T> for RangeToInclusive<T> {
    fn outside(&self, value: &T) -> Option<String> {
        (!self.contains(value)).then(|| value.to_string())
    }

    fn words(&self) -> String {
        format!("at most {}", self.end)
    }
}

/// A queue in packets has no size in bytes to check.
impl Bounds<Queue> for RangeInclusive<Size> {
    fn outside(&self, queue: &Queue) -> Option<String> {
        Bounds::<Size>::outside(self, &queue.size()?)
    }

    fn words(&self) -> String {
        Bounds::<Size>::words(self)
    }
}

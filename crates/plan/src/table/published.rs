//! Built-in published measurements.

/// A published table with its mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Name of the study that reproduces it.
    pub name: &'static str,
    /// Path of the table below the repository root.
    pub path: &'static str,
    /// The table.
    pub text: &'static str,
    pub mapping_path: &'static str,
    pub mapping: &'static str,
}

macro_rules! published {
    ($($name:literal),* $(,)?) => {
        &[$(Published {
            name: $name,
            path: concat!("studies/", $name, "/published/", $name, ".csv"),
            text: include_str!(concat!("../../../../studies/", $name, "/published/", $name, ".csv")),
            mapping_path: concat!("studies/", $name, "/published/", $name, ".toml"),
            mapping: include_str!(concat!("../../../../studies/", $name, "/published/", $name, ".toml")),
        }),*]
    };
}

/// All published tables. To add one, put it beside its mapping and add the name of its study here.
pub static PUBLISHED: &[Published] = published!["page-load"];

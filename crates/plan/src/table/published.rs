//! The measurements that others published, and that are part of the binary.

/// A published table with its mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The name of the study that follows it.
    pub name: &'static str,
    /// Where the table is, below the root of the repository.
    pub path: &'static str,
    /// The table.
    pub text: &'static str,
    /// Where its mapping is.
    pub mapping_path: &'static str,
    /// Its mapping.
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

/// Every published table. To add one, put it beside its mapping and add the name of its study here.
pub static PUBLISHED: &[Published] = published!["page-load"];

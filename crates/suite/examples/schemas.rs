//! Writes the JSON Schemas of `contract/schema/`: `cargo run -p wirelab-suite --example schemas`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract/schema");
    std::fs::create_dir_all(&folder)?;
    for schema in wirelab_suite::schema::all() {
        std::fs::write(folder.join(&schema.file), schema.text())?;
        println!("contract/schema/{}", schema.file);
    }
    Ok(())
}

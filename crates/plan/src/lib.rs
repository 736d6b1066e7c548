//! Study file to plan. Pure: text in, data or a located error out; randomness comes from the study's seed.

"""The Python that endpoints share: the conversation with wirelab, specs, the load engine, answers of servers."""

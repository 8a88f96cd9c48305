"""SmartCache: one cache for LLM applications that knows the conversation, the knowledge base and the KV state."""

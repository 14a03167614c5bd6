"""The Django application: sign-in and access, webhooks, jobs, pages, commands."""

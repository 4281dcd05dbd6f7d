"""What tenants owe: leases become charges, charges an account, budgets and invoices. No clock, no store."""

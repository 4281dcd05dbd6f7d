"""The steps from an empty database to the present tables; ``open_store`` runs those missing."""

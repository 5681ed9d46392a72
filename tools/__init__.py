"""Tools of a checkout, which no wheel holds: what makes the generated files, and the rules that saved objects of Kibana keep."""

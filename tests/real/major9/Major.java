import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.index.mapper.IndexType;
import org.elasticsearch.index.mapper.MappedFieldType;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.RestHandler;

/** What Elasticsearch 8 and 9 declare differently. */
class Major {
  abstract static class Handling extends Plugin implements ActionPlugin {
    abstract List<RestHandler> handlers();

    @Override
    public Collection<RestHandler> getRestHandlers(
        RestHandlersServices services, Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features) {
      return handlers();
    }
  }

  abstract static class Type extends MappedFieldType {
    Type(String name, Map<String, String> meta) {
      super(name, IndexType.NONE, false, meta);
    }
  }
}
